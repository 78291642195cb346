import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './temporary-folder.ts'

export interface Tracer {
  /** Lets go of the process, and resolves to the calls that were seen, a line each. */
  detach(): Promise<readonly string[]>
}

export const hasStrace = spawnSync('strace', ['-V']).status === 0

/**
 * Watches the fsyncs of all threads of a process with strace, and makes calls fail where asked to.
 *
 * @param inject as for strace's `-e inject=`, such as `fsync:error=EIO`
 * @returns `undefined` where strace is missing or is not allowed to attach
 */
export async function trace(pid: number, inject?: string): Promise<Tracer | undefined> {
  const folder = temporaryFolder()
  const file = join(folder.path, 'calls')
  const calls = ['fsync,fdatasync', ...(inject === undefined ? [] : [inject.split(':')[0]])]
  const injected = inject === undefined ? [] : ['-e', `inject=${inject}`]
  const strace = spawn(
    'strace',
    ['-f', '-y', '-e', `trace=${calls.join()}`, ...injected, '-o', file, '-p', `${pid}`],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  const ended = once(strace, 'exit').catch(() => {})
  const attached = new Promise<boolean>(resolve => {
    let said = ''
    strace.stderr.setEncoding('utf8').on('data', text => {
      said += text
      if (said.includes(' attached')) resolve(true)
    })
    ended.then(() => resolve(false))
  })
  if (!(await attached)) {
    folder[Symbol.dispose]()
    return undefined
  }
  return {
    async detach() {
      strace.kill('SIGINT')
      const timer = setTimeout(() => strace.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(timer)
      using _folder = folder
      return readFileSync(file, 'utf8').split('\n')
    },
  }
}
