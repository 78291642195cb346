import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const startTimeoutMs = 30_000
const stopTimeoutMs = 15_000

/** A server in a process of its own. Disposing of it ends the process. */
export interface ServerProcess extends AsyncDisposable {
  readonly pid: number
  readonly url: string
  /** @throws Error with the end of what it printed, when it is gone */
  assertRunning(): void
}

export interface ServerCommand {
  readonly command: readonly [string, ...string[]]
  readonly env: (port: number) => Record<string, string>
  /** What it prints goes there. */
  readonly logFile: string
}

/** Starts a server on a free port of the loopback interface, and resolves once its `GET /readyz` answers 200. */
export async function startServer({ command, env, logFile }: ServerCommand): Promise<ServerProcess> {
  const port = await freePort()
  const { PATH } = process.env
  const log = openSync(logFile, 'a')
  const [program, ...parameters] = command
  const child = spawn(program, parameters, {
    stdio: ['ignore', log, log],
    env: { PATH, NODE_ENV: 'production', ...env(port) },
  })
  closeSync(log)
  let failure: Error | undefined
  child.once('error', error => {
    failure = error
  })
  const killNow = () => child.kill('SIGKILL')
  process.once('exit', killNow)

  const server: ServerProcess = {
    pid: child.pid ?? 0,
    url: `http://127.0.0.1:${port}`,
    assertRunning() {
      if (!failure && child.exitCode === null && child.signalCode === null) return
      const reason = failure?.message ?? `exit code ${child.exitCode ?? child.signalCode}`
      throw new Error(
        `the server ended (${reason}), and last printed:\n${readFileSync(logFile, 'utf8').slice(-2_000)}`,
      )
    },
    async [Symbol.asyncDispose]() {
      process.off('exit', killNow)
      await stop(child)
    },
  }
  try {
    await ready(server)
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
  return server
}

async function ready(server: ServerProcess): Promise<void> {
  const giveUpAt = Date.now() + startTimeoutMs
  while (true) {
    server.assertRunning()
    try {
      const answer = await fetch(`${server.url}/readyz`, { signal: AbortSignal.timeout(1_000) })
      await answer.arrayBuffer()
      if (answer.status === 200) return
    } catch {
      // Not listening yet.
    }
    if (Date.now() > giveUpAt) throw new Error(`the server was not ready within ${startTimeoutMs} ms`)
    await sleep(20)
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
  await ended
  clearTimeout(timer)
}

/** A port of the loopback interface that nobody listens at. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
