import { isUtf8 } from 'node:buffer'
import { parseJsonRecord } from '@plant-store/json'
import { RequestError } from '../answer/failures.ts'

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
