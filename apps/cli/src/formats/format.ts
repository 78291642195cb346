import { Failure } from '../failure.ts'
import { csv } from './csv.ts'
import { ndjson } from './ndjson.ts'

export const formats = { ndjson, csv }
export type FormatName = keyof typeof formats
export const formatNames = Object.keys(formats) as FormatName[]

/** Returns the given format, or the one that the first character indicates. */
export function detectFormat(beginning: Buffer, from: string, given?: FormatName): FormatName {
  const first = beginning.toString().trimStart()[0]
  if (given !== 'csv' && first === '[')
    throw new Failure(`${from}: must have one JSON object on each line, not a JSON array`)
  return given ?? (first === undefined || first === '{' ? 'ndjson' : 'csv')
}
