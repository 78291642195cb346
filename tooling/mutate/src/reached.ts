import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'

// Loaded by every process and thread: those that a test starts write down which mutants they reach, for `follow.ts`.

interface Stryker {
  readonly mutantCoverage?: { readonly static: Readonly<Record<string, number>> }
}

const { REACHED_FOLDER: folder } = process.env
if (folder !== undefined) {
  let written = 0
  const write = () => {
    const { __stryker__: stryker } = globalThis as { __stryker__?: Stryker }
    const reached = Object.keys(stryker?.mutantCoverage?.static ?? {})
    if (reached.length === written || !existsSync(folder)) return
    written = reached.length
    writeFileSync(join(folder, `${process.pid}-${threadId}`), reached.join(' '))
  }
  process.on('exit', write)
  // Some are killed.
  setInterval(write, 25).unref()
}
