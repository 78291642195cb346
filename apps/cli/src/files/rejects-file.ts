import { isUtf8 } from 'node:buffer'
import { writeFileSync } from 'node:fs'
import type { Rejected } from '../formats/lines.ts'
import { fileFailure } from './file-failure.ts'

/** Returns a function that adds lines to a file of NDJSON, which the first of them replaces, and returns once they are on the disk. */
export function createRejectsFile(file: string): (rejected: readonly Rejected[]) => void {
  let flag = 'w'
  return rejected => {
    if (rejected.length === 0) return
    try {
      writeFileSync(file, rejected.map(toLine).join(''), { flag, flush: true })
      flag = 'a'
    } catch (error) {
      throw fileFailure(file, error)
    }
  }
}

/** Bytes that are not text are written as base64, so that the line can still be found and mended. */
function toLine({ line, reason, raw }: Rejected): string {
  const content =
    typeof raw === 'string' || isUtf8(raw) ? { raw: raw.toString() } : { rawBase64: raw.toString('base64') }
  return `${JSON.stringify({ line, reason, ...content })}\n`
}
