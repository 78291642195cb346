import { isUtf8 } from 'node:buffer'
import { parseJsonRecord } from '@plant-store/json'
import type { FastifyRequest } from 'fastify'
import { RequestError } from '../errors/failures.ts'

/** @throws RequestError `bad-json` */
export function readJsonBody({ body }: FastifyRequest): unknown {
  // As its parser has left it.
  const bytes = body as Buffer | undefined
  if (bytes === undefined || bytes.length === 0) {
    throw new RequestError('bad-json', 'the request has no body')
  }
  return readJson(bytes, 'body')
}

export function readJson(bytes: Buffer, what: 'body' | 'line'): unknown {
  if (!isUtf8(bytes)) {
    throw new RequestError('bad-json', `the ${what} is not valid UTF-8`)
  }
  try {
    return parseJsonRecord(bytes.toString())
  } catch (error) {
    throw new RequestError(
      'bad-json',
      `the ${what} is not valid JSON: ${(error as Error).message}`,
    )
  }
}
