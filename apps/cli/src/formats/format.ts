import { Failure } from '../failure.ts'
import { csv } from './csv.ts'
import { ndjson } from './ndjson.ts'

export const formats = { ndjson, csv }
export type FormatName = keyof typeof formats
export const formatNames = Object.keys(formats) as FormatName[]

/** Returns the given format, or the one that the first character indicates. */
export function detectFormat(beginning: Buffer, from: string, given?: FormatName): FormatName {
  const mark = beginning.subarray(0, 2).toString('hex')
  if (mark === 'fffe' || mark === 'feff') throw new Failure(`${from}: must be UTF-8, not UTF-16`)
  const first = beginning.toString().trimStart()[0]
  if (given !== 'csv' && first === '[') {
    throw new Failure(`${from}: must be one object a line, not a JSON array (convert it with jq -c '.[]')`)
  }
  return given ?? (first === undefined || first === '{' ? 'ndjson' : 'csv')
}
