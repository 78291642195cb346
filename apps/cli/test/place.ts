import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { parsePlant } from '@plant-store/domain'
import {
  type Result,
  type Server,
  type StartedCommand,
  startCommand,
  startServer,
  temporaryFolder,
} from '@plant-store/harness'
import { openSnapshot, openStorage } from '@plant-store/persistence'
import { expect } from 'vitest'

/** A folder with a store, or for one in a database, and the programs run in it as their users would. */
export class Place implements AsyncDisposable {
  readonly #temporary = temporaryFolder()
  readonly folder = this.#temporary.path
  readonly store = join(this.folder, 'data', 'store.db')
  readonly url: string
  readonly #started: AsyncDisposable[] = []

  constructor(databaseUrl?: string) {
    this.url = databaseUrl ?? `file:${this.store}`
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  start(
    args: readonly string[],
    { input, env }: { input?: string | Buffer | Readable; env?: Readonly<Record<string, string>> } = {},
  ): StartedCommand {
    const options = { folder: this.folder, databaseUrl: this.url, environment: env ?? {}, input }
    const command = startCommand(args, options)
    this.#started.push(command)
    return command
  }

  run(args: readonly string[], input?: string | Buffer): Promise<Result> {
    return this.start(args, input === undefined ? {} : { input }).result
  }

  /** Runs a command that must fail with one line that matches. */
  async fails(args: readonly string[], exitCode: number, message: RegExp): Promise<void> {
    const { code, stdout, stderr } = await this.run(args)
    expect({ code, stdout, stderr }).toEqual({
      code: exitCode,
      stdout: '',
      stderr: expect.stringMatching(message),
    })
    expect(stderr).toMatch(/^plant-store: .*\n$/)
  }

  /** Stores plants of some 120 bytes, with ids from `from` on. */
  async load(from: number, count: number): Promise<void> {
    await using storage = await openStorage({ url: this.url })
    const plants = Array.from({ length: count }, (_, n) =>
      parsePlant({ id: BigInt(from + n), name: `plant ${from + n} ${'x'.repeat(100)}` }),
    )
    await storage.plants.insertAll?.(plants)
  }

  async count(): Promise<number> {
    await using snapshot = await openSnapshot(this.url)
    return snapshot.count
  }

  /** The real server on the store. */
  async serve(): Promise<RunningServer> {
    const server = await startServer({
      folder: this.folder,
      databaseUrl: this.url,
      environment: { ACCESS_TOKENS: 'given' },
      keepsOnlyWarnings: true,
    })
    this.#started.push(server)
    const request = async (method: string, path: string, token: string, body?: string) => {
      const answer = await fetch(`${server.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body }),
      })
      await answer.arrayBuffer()
      return answer.status
    }
    return { ...server, request }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#started) await each[Symbol.asyncDispose]()
    this.#temporary[Symbol.dispose]()
  }
}

export interface RunningServer extends Server {
  /** Resolves to the status. */
  request(method: string, path: string, token: string, body?: string): Promise<number>
}
