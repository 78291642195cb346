import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { type Plant, parsePlant } from '@plant-store/domain'
import {
  type Result,
  type StartedCommand,
  startCommand,
  startServer,
  temporaryFolder,
} from '@plant-store/harness'
import { entities, openReader, openStorage } from '@plant-store/persistence'
import { expect, vi } from 'vitest'
import { run } from '../src/program.ts'

/** Arguments, or a text with a space between them. */
export type Args = string | readonly string[]

/** How a standard stream differs from a file that takes everything. */
interface StreamOptions {
  readonly isTTY?: boolean
  /** The code of the system's error for each write, such as `ENOSPC`. */
  readonly errorCode?: string
}

interface StandardStreams {
  readonly stdout?: StreamOptions
  readonly stderr?: StreamOptions
}

/** A folder with a store, or for one elsewhere, and the commands that are run in it. */
export class Place implements AsyncDisposable {
  readonly #temporary = temporaryFolder()
  readonly folder = this.#temporary.path
  readonly store = join(this.folder, 'data', 'store.db')
  readonly url: string
  readonly #started: AsyncDisposable[] = []

  constructor(url?: string) {
    this.url = url ?? `file:${this.store}`
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  /** Starts the program in a process, as its users do. */
  start(args: Args, input = ''): StartedCommand {
    const command = startCommand(listOf(args), {
      folder: this.folder,
      databaseUrl: this.url,
      input,
    })
    this.#started.push(command)
    return command
  }

  /**
   * Runs a command in this process, which takes a fraction of the time. One at a time:
   * it has the folder to itself.
   */
  async run(
    args: Args,
    input: string | Buffer | Readable = '',
    streams: StandardStreams = {},
  ): Promise<Result> {
    const folderBefore = process.cwd()
    const stdout = new Output(streams.stdout)
    const stderr = new Output(streams.stderr)
    const stdin = input instanceof Readable ? input : Readable.from([Buffer.from(input)])
    const spies = [
      replaceStream('stdout', stdout),
      replaceStream('stderr', stderr),
      replaceStream('stdin', stdin),
    ]
    vi.stubEnv('DATABASE_URL', this.url)
    process.chdir(this.folder)
    try {
      await run(listOf(args))
      return {
        code: Number(process.exitCode ?? 0),
        stdout: stdout.text(),
        stderr: stderr.text(),
      }
    } finally {
      process.exitCode = undefined
      process.chdir(folderBefore)
      vi.unstubAllEnvs()
      for (const spy of spies) {
        spy.mockRestore()
      }
    }
  }

  /** Runs a command that must fail with one line that matches. */
  async fails(args: Args, exitCode: number, message: RegExp): Promise<void> {
    const { code, stdout, stderr } = await this.run(args)
    expect({ code, stdout, stderr }, `${args}`).toEqual({
      code: exitCode,
      stdout: '',
      stderr: expect.stringMatching(message),
    })
    expect(stderr, `${args}`).toMatch(/^plant-store: (?!error).*\n$/)
  }

  async createStore(): Promise<void> {
    await using _storage = await openStorage({ url: this.url })
  }

  /** Stores plants of some 120 bytes, with ids from `from` on. */
  async load(from: number, count: number): Promise<void> {
    await using storage = await openStorage({ url: this.url })
    const plants = Array.from({ length: count }, (_, n) => {
      const id = BigInt(from + n)
      return parsePlant({ id, name: `plant ${id} ${'x'.repeat(100)}` })
    })
    await storage.plants.insertAll(plants)
  }

  async plants(): Promise<Plant[]> {
    await using store = await openReader(this.url)
    const all: Plant[] = []
    for await (const page of store.all('plants')) {
      all.push(...page)
    }
    return all
  }

  async count(): Promise<number> {
    return (await this.counts()).plants
  }

  /** Returns the number of each entity. */
  async counts() {
    await using store = await openReader(this.url)
    return await store.counts()
  }

  /**
   * The real server on the store, and requests to it, which resolve to the status. The
   * target is such as `GET /plants`.
   */
  async serve() {
    const server = await startServer({
      folder: this.folder,
      databaseUrl: this.url,
      environment: { ACCESS_TOKENS: 'given-by-the-environment' },
      keepsOnlyWarnings: true,
    })
    this.#started.push(server)
    const request = async (
      target: string,
      token = 'given-by-the-environment',
      body: string | null = null,
    ) => {
      const [method = '', path = ''] = target.split(' ')
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
      }
      const answer = await fetch(`${server.url}${path}`, { method, headers, body })
      await answer.arrayBuffer()
      return answer.status
    }
    const create = (id: number | bigint, token?: string) =>
      request('POST /plants', token, `{"id":${id},"name":"from a client"}`)
    return { ...server, request, create }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of this.#started) {
      await program[Symbol.asyncDispose]()
    }
    this.#temporary[Symbol.dispose]()
  }
}

/**
 * Returns the counts of all entities in words, such as `3 plants, 0 webhooks and 1
 * token`. A count is 0 by default.
 */
export function countsInWords(counts: Readonly<Record<string, number | string>>): string {
  const words = Object.keys(entities).map(plural => {
    const count = counts[plural] ?? 0
    return `${count} ${count === 1 ? plural.slice(0, -1) : plural}`
  })
  return new Intl.ListFormat('en-GB').format(words)
}

function replaceStream(name: 'stdin' | 'stdout' | 'stderr', stream: Readable | Writable) {
  // The program uses only what each stream has, not what a terminal adds.
  return vi.spyOn(process, name, 'get').mockReturnValue(stream as never)
}

const listOf = (args: Args) => (typeof args === 'string' ? args.split(' ') : args)

type WriteCallback = (error?: Error) => void

class Output extends Writable {
  readonly isTTY: boolean
  readonly #errorCode: string | undefined
  readonly #chunks: Buffer[] = []

  constructor({ isTTY = false, errorCode }: StreamOptions = {}) {
    super()
    this.isTTY = isTTY
    this.#errorCode = errorCode
  }

  override _write(chunk: Buffer, _: string, done: WriteCallback): void {
    if (this.#errorCode !== undefined) {
      const error = new Error(this.#errorCode)
      done(Object.assign(error, { code: this.#errorCode }))
      return
    }
    this.#chunks.push(chunk)
    done()
  }

  text(): string {
    return `${Buffer.concat(this.#chunks)}`
  }
}
