import { isUtf8 } from 'node:buffer'
import { parseJsonRecord } from '@plant-store/json'
import { RequestError } from '../answer/failures.ts'

/** @throws RequestError `bad-json` */
export function readJson(bytes: Buffer, what: 'body' | 'line'): unknown {
  if (!isUtf8(bytes)) throw new RequestError('bad-json', `the ${what} is not valid UTF-8`)
  try {
    return parseJsonRecord(bytes.toString())
  } catch (error) {
    throw new RequestError('bad-json', `the ${what} is not valid JSON: ${(error as Error).message}`)
  }
}
