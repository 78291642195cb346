import { ChildProcess } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'

// Loaded by every process and thread that a test starts: records the mutants that they reach, for
// `follow.ts`.

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
  // Regularly, as some are killed.
  setInterval(write, 25).unref()
}

// Some programs get an environment of their own.
interface Spawning {
  spawn(options: { envPairs: string[] }): unknown
}
const { spawn } = ChildProcess.prototype as unknown as Spawning
Object.assign(ChildProcess.prototype, {
  spawn(options: { envPairs: string[] }) {
    for (const name of ['__STRYKER_ACTIVE_MUTANT__', 'REACHED_FOLDER', 'NODE_OPTIONS']) {
      const pair = `${name}=${process.env[name]}`
      const isGiven = options.envPairs.some(each => each.startsWith(`${name}=`))
      if (process.env[name] !== undefined && !isGiven) options.envPairs.push(pair)
    }
    return Reflect.apply(spawn, this, [options])
  },
} satisfies Spawning)
