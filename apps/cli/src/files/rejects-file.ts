import { isUtf8 } from 'node:buffer'
import { writeFileSync } from 'node:fs'
import { fileFailure } from '../failure.ts'
import type { Rejected } from '../formats/lines.ts'

/** Returns a function that appends lines to an NDJSON file, durably. The first call replaces the file. */
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

function toLine({ line, reason, raw }: Rejected): string {
  const content = isUtf8(raw) ? { raw: raw.toString() } : { rawBase64: raw.toString('base64') }
  return `${JSON.stringify({ line, reason, ...content })}\n`
}
