import { Failure } from '../failure.ts'
import { csv } from './csv.ts'
import { ndjson } from './ndjson.ts'

export const formats = { ndjson, csv }
export type FormatName = keyof typeof formats
export const formatNames = Object.keys(formats) as FormatName[]

/** Returns the given format, or the one that the first character indicates. */
export function detectFormat(beginning: Buffer, from: string, given?: FormatName): FormatName {
  const mark = beginning.subarray(0, 2).toString('hex')
  if (mark === 'fffe' || mark === 'feff') throw new Failure(`${from}: it is UTF-16, and must be UTF-8`)
  const first = beginning.toString().trimStart()[0]
  if (given !== 'csv' && first === '[') {
    throw new Failure(
      `${from}: it is a JSON array, and must be one object a line (convert it with jq -c '.[]')`,
    )
  }
  return given ?? (first === undefined || first === '{' ? 'ndjson' : 'csv')
}
