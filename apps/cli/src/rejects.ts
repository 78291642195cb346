import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { fileFailure } from './failure.ts'
import type { Entry } from './lines.ts'

/** The lines that were not imported, each as JSON on a line of a file that is made with the first of them. */
export interface Rejects {
  add(entry: Pick<Entry, 'line' | 'raw'>, reason: string): void
  /** Writes what was added to the file. */
  flush(): void
  /** Flushes, to the disk. */
  close(): void
}

export function createRejects(file: string): Rejects {
  let descriptor: number | undefined
  let text = ''
  const attempt = (write: () => void) => {
    try {
      write()
    } catch (error) {
      throw fileFailure(file, error)
    }
  }
  const flush = () => {
    if (text === '') return
    attempt(() => {
      descriptor ??= openSync(file, 'w')
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at)
    })
    text = ''
  }

  return {
    add({ line, raw }, reason) {
      const content = typeof raw === 'string' ? { raw } : toText(raw)
      text += `${JSON.stringify({ line, reason, ...content })}\n`
    },
    flush,
    close() {
      flush()
      if (descriptor === undefined) return
      const open = descriptor
      descriptor = undefined
      attempt(() => fsyncSync(open))
      closeSync(open)
    },
  }
}

/** Bytes that are not text are told as base64, so that the line can still be found and mended. */
function toText(bytes: Buffer): { raw: string } | { rawBase64: string } {
  try {
    return { raw: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { rawBase64: bytes.toString('base64') }
  }
}
