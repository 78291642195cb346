import { isUtf8 } from 'node:buffer'
import { parseJsonRecord } from '@plant-store/json'
import type { FastifyInstance } from 'fastify'
import { RequestError } from '../answer/failures.ts'

/** Hands every body over as it came: it is JSON, or the door was shut. */
export function takeJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, parsed) =>
    parsed(null, body),
  )
}

/** @throws RequestError `bad-json` */
export function readJson(body: Buffer | undefined): unknown {
  if (body === undefined || body.length === 0) throw new RequestError('bad-json', 'the request has no body')
  if (!isUtf8(body)) throw new RequestError('bad-json', 'the body is not valid UTF-8')
  try {
    return parseJsonRecord(body.toString())
  } catch (error) {
    throw new RequestError('bad-json', `the body is not valid JSON: ${(error as Error).message}`)
  }
}
