import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'

/** The exit code of a process, or the signal that ended it. */
export type Ending = number | NodeJS.Signals

/** A program in a process of its own. Disposing of it kills it. */
export type Program = ReturnType<typeof launch>

export interface LaunchOptions {
  readonly folder?: string | undefined
  /** The whole environment: nothing of this process' own is passed on. */
  readonly environment?: NodeJS.ProcessEnv
  /**
   * A file for all that it prints, instead of keeping it: reading costs a measurement
   * time.
   */
  readonly logFile?: string | undefined
  /** Whether standard output is kept. */
  readonly keepsOutput?: boolean
  /** The signal that it gets when this process ends before it. SIGKILL unless given. */
  readonly lastSignal?: NodeJS.Signals
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined
}

const running = new Map<ChildProcessWithoutNullStreams, NodeJS.Signals>()
process.once('exit', () => {
  for (const [child, signal] of running) {
    child.kill(signal)
  }
})

export function launch(
  [file, ...args]: readonly [string, ...string[]],
  {
    folder,
    environment = {},
    logFile,
    keepsOutput = true,
    lastSignal = 'SIGKILL',
    owner,
  }: LaunchOptions = {},
) {
  const log = logFile === undefined ? undefined : openSync(logFile, 'a')
  const child = spawn(file, args, {
    cwd: folder,
    env: environment,
    stdio: log === undefined ? 'pipe' : ['pipe', log, log],
    ...owner,
  }) as ChildProcessWithoutNullStreams
  if (log !== undefined) {
    closeSync(log)
  }
  running.set(child, lastSignal)
  let output = ''
  let errors = ''
  // A program that ends early does not read what is left for it.
  child.stdin.on('error', () => {})
  if (keepsOutput) {
    child.stdout?.setEncoding('utf8').on('data', text => {
      output += text
    })
  }
  child.stderr?.setEncoding('utf8').on('data', text => {
    errors += text
  })
  const ended = new Promise<Ending>((resolve, reject) => {
    child.once('error', reject).once('close', (code, signal) => {
      running.delete(child)
      resolve(code ?? (signal as NodeJS.Signals))
    })
  })
  ended.catch(() => running.delete(child))
  const isRunning = () =>
    child.pid !== undefined && child.exitCode === null && child.signalCode === null
  const end = (signal: NodeJS.Signals = 'SIGTERM') => {
    if (isRunning()) {
      child.kill(signal)
    }
    return ended
  }
  return {
    process: child,
    pid: child.pid as number,
    /** Resolves once it has ended and all of its output was read. */
    ended,
    /** Returns what it has written to standard output so far. */
    output: () => output,
    /** Returns what it has written to standard error so far. */
    errors: () => errors,
    isRunning,
    /** @throws Error with the end of what it printed, when it has ended */
    assertRunning() {
      if (isRunning()) {
        return
      }
      const printed = logFile === undefined ? errors : readFileSync(logFile, 'utf8')
      const how = child.exitCode ?? child.signalCode ?? 'it could not be started'
      throw new Error(
        `${file} ended (${how}), and last printed:\n${printed.slice(-2_000)}`,
      )
    },
    /** Sends a signal and waits for the end. */
    end,
    async [Symbol.asyncDispose]() {
      await end('SIGKILL').catch(() => {})
    },
  }
}
