import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { openSnapshot } from '@plant-store/persistence'

const cli = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const api = fileURLToPath(import.meta.resolve('@plant-store/api/dist/main.js'))

export interface Result {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly process: ChildProcess
  readonly result: Promise<Result>
}

/** A folder with a store, or for one in a database, and the programs run in it as their users would. */
export class Place implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'plant-store-cli-'))
  readonly store = join(this.folder, 'data', 'store.db')
  readonly url: string
  readonly #started: ChildProcess[] = []

  constructor(databaseUrl?: string) {
    this.url = databaseUrl ?? `file:${this.store}`
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  start(
    args: readonly string[],
    { input, env }: { input?: string | Buffer | Readable; env?: object } = {},
  ): Running {
    const child = spawn(process.execPath, [cli, ...args], {
      cwd: this.folder,
      env: { DATABASE_URL: this.url, ...env },
    })
    this.#started.push(child)
    // A program that ends early doesn't read what is left for it.
    child.stdin.on('error', () => {})
    if (input instanceof Readable) input.pipe(child.stdin)
    else child.stdin.end(input)
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', text => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', text => (stderr += text))
    return { process: child, result: once(child, 'close').then(([code]) => ({ code, stdout, stderr })) }
  }

  run(args: readonly string[], input?: string | Buffer): Promise<Result> {
    return this.start(args, input === undefined ? {} : { input }).result
  }

  async count(): Promise<number> {
    await using snapshot = await openSnapshot(this.url)
    return snapshot.count
  }

  /** The real server on the store. */
  async serve(): Promise<Server> {
    const child = spawn(process.execPath, [api], {
      cwd: this.folder,
      env: { DATABASE_URL: this.url, PORT: '0', ACCESS_TOKENS: 'given' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#started.push(child)
    for await (const line of createInterface({ input: child.stdout })) {
      const { url } = JSON.parse(line) as { url?: string }
      if (url === undefined) continue
      child.stdout.resume()
      return new Server(child, url)
    }
    throw new Error('the server did not start')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#started) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    rmSync(this.folder, { recursive: true })
  }
}

export class Server {
  readonly #child: ChildProcess
  readonly #url: string

  constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.#url = url
  }

  /** @returns the status */
  async request(method: string, path: string, token: string, body?: string): Promise<number> {
    const answer = await fetch(`${this.#url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body }),
    })
    await answer.arrayBuffer()
    return answer.status
  }

  async stop(): Promise<void> {
    const closed = once(this.#child, 'close')
    this.#child.kill('SIGTERM')
    await closed
  }
}

/** Asks again and again until it is so; the test's own time limit ends a wait in vain. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise(resolve => setTimeout(resolve, 20))
}
