import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isInstalled } from './is-installed.ts'
import { launch } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'

export const hasStrace = isInstalled('strace')

/** The reason why nothing can be traced here: some containers forbid it. */
if (!hasStrace && process.env['CI']) {
  throw new Error('strace is missing')
}

export const noTracer = hasStrace ? 'not allowed: tracing a process' : 'strace is missing'

/**
 * Returns whether strace may start a program. Attaching to one can be forbidden all the
 * same.
 */
export const mayStartTraced = () =>
  spawnSync('strace', ['-o', '/dev/null', process.execPath, '--version']).status === 0

/**
 * Watches the fsyncs of all threads of a process with strace, and injects faults.
 *
 * @param inject as in strace's `-e inject=`, such as `fsync:error=EIO`; without a fault
 *   it adds calls to watch
 * @returns `undefined` if strace is missing or must not attach
 */
export async function trace(pid: number, inject?: string) {
  const folder = temporaryFolder()
  const file = join(folder.path, 'calls')
  const calls = ['fsync', 'fdatasync', ...(inject?.split(':', 1) ?? [])]
  const injected = inject?.includes(':') ? ['-e', `inject=${inject}`] : []
  const options = ['-f', '-y', '-e', `trace=${calls}`, ...injected, '-o', file]
  const { PATH } = process.env
  const strace = launch(['strace', ...options, '-p', `${pid}`], {
    environment: { PATH },
    lastSignal: 'SIGINT',
  })
  const isAttached = () => strace.errors().includes(' attached')
  await until('strace to attach', () => isAttached() || !strace.isRunning())
  if (!isAttached()) {
    folder[Symbol.dispose]()
    return
  }
  return {
    /** Detaches from the process, and resolves to the observed calls, a line each. */
    async detach() {
      const timer = setTimeout(() => strace.end('SIGKILL'), 10_000)
      await strace.end('SIGINT')
      clearTimeout(timer)
      using _folder = folder
      return readFileSync(file, 'utf8').split('\n')
    },
  }
}
