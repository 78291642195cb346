import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { Plant } from '@plant-store/domain'
import { plant } from '@plant-store/domain/testing'
import {
  type Result,
  type StartedCommand,
  startCommand,
  startServer,
  temporaryFolder,
} from '@plant-store/harness'
import { openReader, openStorage } from '@plant-store/persistence'
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

const storesByPlants = new Map<number | readonly Plant[], Buffer>()

function plantsFrom(first: number, count: number): readonly Plant[] {
  const ids = Array.from({ length: count }, (_, n) => BigInt(first + n))
  return ids.map(id => plant(id, `plant ${id}`, 'x'.repeat(100)))
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
    const stdout = outputStream(streams.stdout)
    const stderr = outputStream(streams.stderr)
    const stdin = input instanceof Readable ? input : Readable.from([Buffer.from(input)])
    const spies = [
      replaceStream('stdout', stdout.stream),
      replaceStream('stderr', stderr.stream),
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

  /**
   * Runs the commands of a session, and expects what they print. `$ ` stands before a
   * command, and `< ` before the lines of its standard input. Those of standard output
   * follow, those of standard error after `! `, and an exit code other than 0 in
   * brackets. `…` is any text within a line.
   */
  async session(text: string): Promise<void> {
    for (const step of text.replaceAll(/^ +/gm, '').split(/^\$ /m).slice(1)) {
      const [command = '', ...lines] = linesOf(step)
      const isInput = (line: string) => line.startsWith('< ')
      const input = lines.filter(isInput).map(line => `${line.slice(2)}\n`)
      const expected = lines.filter(line => !isInput(line))

      const { code, stdout, stderr } = await this.run(command, input.join(''))

      const errors = linesOf(stderr).map(line => `! ${line}`)
      const ending = code === 0 ? [] : [`[${code}]`]
      const printed = [...linesOf(stdout), ...errors, ...ending]
      // A failure shows only the lines that differ.
      const shown = printed.map((line, n) => {
        const words = expected[n] ?? ''
        const escaped = words.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
        const pattern = escaped.replaceAll('…', '.*')
        return new RegExp(`^${pattern}$`).test(line) ? words : line
      })
      expect(shown, command).toEqual(expected)
    }
  }

  /**
   * Makes a store with plants, or with this many as `load` stores them. Copies one,
   * because making one takes a thread.
   */
  async createStore(plants: number | readonly Plant[] = 0): Promise<void> {
    let bytes = storesByPlants.get(plants)
    if (bytes === undefined) {
      await using made = new Place()
      await made.save(typeof plants === 'number' ? plantsFrom(0, plants) : plants)
      bytes = readFileSync(made.store)
      storesByPlants.set(plants, bytes)
    }
    mkdirSync(dirname(this.store), { recursive: true })
    writeFileSync(this.store, bytes)
  }

  /** Stores plants of some 120 bytes, with ids from `from` on. */
  load(from: number, count: number): Promise<void> {
    return this.save(plantsFrom(from, count))
  }

  async save(plants: readonly Plant[]): Promise<void> {
    await using storage = await openStorage({ url: this.url })
    await storage.plants.saveAll(plants)
  }

  /** Returns the number of each entity. */
  async counts() {
    await using store = await openReader(this.url)
    return await store.counts()
  }

  /** The real server on the store, and requests to it, which resolve to the status. */
  async serve() {
    const server = await startServer({
      folder: this.folder,
      databaseUrl: this.url,
      environment: { ACCESS_TOKENS: 'given-by-the-environment' },
      keepsOnlyWarnings: true,
    })
    this.#started.push(server)
    const request = async (path: string, token = 'given-by-the-environment') => {
      const headers = { authorization: `Bearer ${token}` }
      const answer = await fetch(`${server.url}${path}`, { headers })
      await answer.arrayBuffer()
      return answer.status
    }
    return { ...server, request }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of this.#started) {
      await program[Symbol.asyncDispose]()
    }
    this.#temporary[Symbol.dispose]()
  }
}

function replaceStream(name: 'stdin' | 'stdout' | 'stderr', stream: Readable | Writable) {
  // The program uses only what each stream has, not what a terminal adds.
  return vi.spyOn(process, name, 'get').mockReturnValue(stream as never)
}

const linesOf = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .filter(line => line !== '')

const listOf = (args: Args) => (typeof args === 'string' ? args.split(' ') : args)

/** Returns a standard stream, and what was written to it. */
function outputStream({ isTTY = false, errorCode }: StreamOptions = {}) {
  const chunks: Buffer[] = []
  const error = errorCode && Object.assign(new Error(errorCode), { code: errorCode })
  const stream = new Writable({
    write(chunk, _, done) {
      chunks.push(chunk)
      done(error || null)
    },
  })
  const text = () => (error ? '' : `${Buffer.concat(chunks)}`)
  return { stream: Object.assign(stream, { isTTY }), text }
}
