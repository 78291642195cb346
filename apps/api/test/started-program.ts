import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/** The program as it is started by whoever installs it: by its main file, with nothing of this process' environment. */
export interface Program {
  readonly process: ChildProcess
  /** What it has written so far. */
  readonly output: () => string
  readonly errors: () => string
  /** Resolves once it has written a log line with this message. */
  logged(message: string): Promise<LogEntry>
  /** Its exit code, or the signal that ended it, once its output is complete. */
  readonly ended: Promise<number | string>
}

interface LogEntry {
  readonly msg: string
  readonly url?: string
}

export const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))

/**
 * @param folder where it is started: its relative paths begin there.
 * @param filesMax how many files it may have open at once
 */
export function startProgram(
  folder: string,
  environment: Record<string, string> = {},
  filesMax?: number,
): Program {
  const [command, ...args] =
    filesMax === undefined
      ? [process.execPath, main]
      : ['/bin/sh', '-c', `ulimit -n ${filesMax} && exec "$0" "$1"`, process.execPath, main]
  const env = { PORT: '0', ...environment }
  return watch(spawn(command as string, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] }))
}

/** On a terminal, where its log and what it writes to standard error come as one output; `interrupt` stops it. */
export function startOnTerminal(folder: string, environment: Record<string, string> = {}): Program {
  const { PATH } = process.env
  const env = { PATH, SHELL: '/bin/sh', PORT: '0', ...environment }
  const command = `exec '${process.execPath}' '${main}'`
  return watch(spawn('script', ['-qec', command, '/dev/null'], { cwd: folder, env }))
}

export const hasTerminals = spawnSync('script', ['--version']).status === 0

/** What Ctrl-C at its terminal does. */
export async function interrupt({ process, ended }: Program): Promise<number | string> {
  process.stdin?.write('\x03')
  return ended
}

function watch(child: ChildProcess & { stdout: Readable; stderr: Readable }): Program {
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    output += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    errors += text
  })
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string)

  const find = (message: string) => {
    for (const line of output.split('\n').slice(0, -1)) {
      if (!line.startsWith('{')) continue
      const entry = JSON.parse(line) as LogEntry
      if (entry.msg === message) return entry
    }
    return undefined
  }
  return {
    process: child,
    output: () => output,
    errors: () => errors,
    ended,
    async logged(message) {
      for (;;) {
        const entry = find(message)
        if (entry !== undefined) return entry
        const next = await Promise.race([once(child.stdout, 'data'), ended])
        if (!Array.isArray(next) && find(message) === undefined) {
          throw new Error(`the program ended with ${next} and this: ${errors}`)
        }
      }
    },
  }
}

/** Where a program that listens is to be reached, once it is. */
export async function urlOf(program: Program): Promise<string> {
  return (await program.logged('listening')).url as string
}

export async function stop(program: Program, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
  program.process.kill(signal)
  return program.ended
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A port of the loopback interface, with somebody listening at it or free again. */
export async function takePort(): Promise<{ port: number; free(): Promise<void> }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const free = async () => {
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  onTestFinished(free)
  return { port: (server.address() as { port: number }).port, free }
}
