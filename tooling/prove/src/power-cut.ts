import { hash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { parsePlant } from '@plant-store/domain'
import {
  launch,
  mayStartTraced,
  noTracer,
  type Program,
  startCommand,
  temporaryFolder,
  until,
} from '@plant-store/harness'
import { createRandom, type Random } from '@plant-store/harness/random'
import { inspectStore, openReader, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { type Finding, figure, type Part } from './part.ts'
import { connect, token } from './program.ts'
import type { Programs } from './programs.ts'
import { type Image, parseCalls, RecordedDisk, recording } from './recorded-disk.ts'

const clients = 8
const plantsOfAClient = 5
const versions = 3
/**
 * Up to this many pieces that are not durable, every subset is tried. Of more pieces,
 * some subsets.
 */
const piecesMax = 4
const subsets = 6

/** The content of a file as text, or `undefined`. */
type Content = string | undefined

interface Scene {
  readonly name: string
  readonly command: readonly string[]
  readonly store: string
  /** A fault, as in strace's `-e inject=`. */
  readonly inject?: string | undefined
  /** The file that matters. Its folder has all files that are recorded. */
  readonly file: string
  /** Uses the program, which otherwise ends. */
  readonly use?: (program: Program) => Promise<void>
  /** @throws Error if it is damaged */
  readonly read: (file: string) => Promise<string> | string
  /**
   * Returns what is wrong with a content, or why it cannot be read, given the program's
   * output so far.
   */
  readonly judge: (content: Content | Error, said: string) => string | undefined
}

interface Tally {
  boundaries: number
  images: number
  judged: number
  readonly failures: string[]
}

/** A server under load, from an empty folder to its stop. */
export const cutServer: Part = ({ seed, programs, scale }) =>
  cutPower(seed, async folder => [
    serving(folder, programs, Math.ceil(plantsOfAClient * scale)),
  ])

/**
 * Faults of the fsync after a pass that copies the WAL. Only that fsync is an fdatasync.
 * The first fails for good, the second once.
 */
const faults = ['fdatasync:error=EIO:when=2+', 'fdatasync:error=EIO:when=2']

/** The same server, whose fsync of copied pages fails. */
export const cutFailedCopies: Part = ({ seed, programs }) =>
  cutPower(seed, async folder =>
    faults.map(fault => {
      const place = join(folder, fault)
      mkdirSync(place)
      // A fault takes some passes to come, and only a server that goes on after it does
      // all of this.
      return serving(place, programs, 4 * plantsOfAClient, fault)
    }),
  )

/**
 * Each command, and the file in the place of its copy. A damaged store has a log, which
 * must not be applied to the new one.
 */
const copies = [
  ['backup', 'an old file'],
  ['restore', 'an old file'],
  ['export', 'an old file'],
  ['backup', 'nothing'],
  ['restore', 'nothing'],
  ['export', 'nothing'],
  ['restore', 'a damaged store'],
] as const

/** The commands that write a file completely or not at all. */
export const cutCopies: Part = ({ seed, programs, scale }) => {
  // Copies that replace a file write and fsync all that others do: a very short run needs
  // no others.
  const scenes = copies.slice(0, scale < 0.05 ? 3 : copies.length)
  return cutPower(seed, folder =>
    Promise.all(scenes.map(copy => copying(copy, folder, programs))),
  )
}

/**
 * Records what the program writes and fsyncs, and simulates a power cut at every fsync.
 * Of the data that was not durable, the disk may hold all, nothing or any part, down to a
 * sector. The result must open with everything answered.
 */
async function cutPower(
  seed: number,
  scenesIn: (folder: string) => Promise<readonly Scene[]>,
): Promise<Finding> {
  if (!mayStartTraced()) {
    return {
      tried: 'nothing',
      times: 0,
      failures: [],
      skipped: [`power cuts: ${noTracer}`],
    }
  }
  const random = createRandom(seed)
  const tally: Tally = { boundaries: 0, images: 0, judged: 0, failures: [] }
  using folder = temporaryFolder()
  for (const scene of await scenesIn(folder.path)) {
    if (tally.failures.length === 0) {
      await cutScene(scene, random, tally)
    }
  }
  return {
    tried: `the power cut at ${figure(tally.boundaries)} fsyncs; ${figure(tally.images)} images of the disk opened, ${figure(tally.judged)} times compared with what was answered`,
    times: tally.boundaries,
    failures: tally.failures,
  }
}

function serving(
  folder: string,
  programs: Programs,
  plants: number,
  inject?: string,
): Scene {
  const file = join(folder, 'plants.db')
  return {
    name: inject === undefined ? 'serve' : `serve with ${inject}`,
    inject,
    command: programs.server,
    store: file,
    file,
    async use(program) {
      const listening = /"url":"([^"]+)"/
      await until(
        'it listens',
        () => listening.test(program.output()) || !program.isRunning(),
      )
      const url = listening.exec(program.output())?.[1] as string
      const { client, operations } = await connect(url)
      let hasFailed = false
      const write = async (id: number, version: number) => {
        const kind = version === 0 ? 'create' : 'replace'
        const text = { name: nameOf(id, version) }
        const { is } = await operations.act(kind, BigInt(id), text)
        hasFailed ||= inject !== undefined && is === 'unknown'
        if (!hasFailed && is !== 'done') {
          throw new Error(`version ${version} of plant ${id} is ${is}`)
        }
      }
      const work = async (first: number) => {
        for (let n = 0; n < plants * versions && !hasFailed; n++) {
          await write(first + Math.floor(n / versions), n % versions)
        }
      }
      const firstIds = Array.from({ length: clients }, (_, n) => n * 1_000)
      await Promise.all(firstIds.map(work))
      client.close()
      program.process.kill('SIGTERM')
    },
    read: readStore,
    judge(content, said) {
      if (content instanceof Error) {
        return isDamaged(content)
      }
      const found = new Map(
        (content || undefined)
          ?.split('\n')
          .map(line => line.split(' ') as [string, string]),
      )
      for (const [, id = '', version] of said.matchAll(/"name":"p(\d+)v(\d+)/g)) {
        const isKept = versionOf(found.get(id)) >= Number(version)
        if (!isKept) {
          return `plant ${id}, version ${version}, is lost`
        }
      }
      const wrong = [...found].find(
        ([id, name]) => name !== nameOf(Number(id), versionOf(name)),
      )
      return wrong && `plant ${wrong[0]} is not what was sent`
    },
  }
}

/** Returns NaN without a name that has one. */
const versionOf = (name = '') => Number(/v(\d+)/.exec(name)?.[1])

const nameOf = (id: number, version: number) =>
  `p${id}v${version}-${'x'.repeat((id * 37 + version * 911) % 3_000)}`

/** A command that writes a file completely or not at all. */
async function copying(
  [command, old]: (typeof copies)[number],
  place: string,
  programs: Programs,
): Promise<Scene> {
  const folder = join(place, `${command}-${old}`)
  const store = join(folder, 'source', 'plants.db')
  await makeStore(store, 'new')
  const file = join(folder, 'target', 'copy')
  mkdirSync(dirname(file))
  const read =
    command === 'export' ? (path: string) => readFileSync(path, 'utf8') : readStore
  const written =
    command === 'export'
      ? (await startCommand(['export'], { databaseUrl: `file:${store}` }).result).stdout
      : await readStore(store)
  let before: Content
  if (old !== 'nothing') {
    before = 'old'
    if (command === 'export') {
      writeFileSync(file, before)
    } else {
      await makeStore(file, 'old')
      // Reading a store changes its files.
      const same = join(folder, 'old', 'plants.db')
      await makeStore(same, 'old')
      before = await readStore(same)
    }
    if (old === 'a damaged store') {
      damage(file)
    }
  }
  const [of, argument] = command === 'restore' ? [file, store] : [store, file]
  return {
    name: `${command} in the place of ${old}`,
    command: [...programs.commandLine, command, argument, '--force'],
    store: of,
    file,
    read,
    judge(content, said) {
      if (content === written) {
        return
      }
      if (said.includes('exit 0')) {
        return 'what it said to have written is lost'
      }
      if (content instanceof Error) {
        return old === 'a damaged store' ? undefined : isDamaged(content)
      }
      return content === before
        ? undefined
        : `what was there is lost: ${content?.slice(0, 200)}`
    },
  }
}

const isDamaged = ({ message }: Error) => `it is damaged: ${message}`

/** Makes a store like that of a killed server, whose last changes are only in its log. */
async function makeStore(file: string, name: string) {
  using open = temporaryFolder()
  const source = join(open.path, 'plants.db')
  await using storage = await openStorage({ url: `file:${source}` })
  const plants = Array.from({ length: 200 }, (_, id) =>
    parsePlant({ id: BigInt(id), name: `${name} ${id}` }),
  )
  await Promise.all(plants.map(plant => storage.plants.insert(plant)))
  mkdirSync(dirname(file), { recursive: true })
  for (const suffix of ['', '-wal']) {
    copyFileSync(source + suffix, file + suffix)
  }
}

/**
 * Overwrites the first page. The log has pages of plants, and not the first, with which
 * SQLite could open the store.
 */
function damage(file: string) {
  const database = new Database(file)
  database.pragma('wal_checkpoint(truncate)')
  database.exec("update plants set name = replace(name, 'old', 'odd')")
  const files = ['', '-wal'].map(
    suffix => [file + suffix, readFileSync(file + suffix)] as const,
  )
  database.close()
  for (const [path, content] of files) {
    writeFileSync(path, path === file ? content.fill('?', 0, 4096) : content)
  }
}

/**
 * Opens the store with the program. A server starts where nothing can be read yet: it
 * makes the tables.
 */
async function readStore(file: string) {
  const url = `file:${file}`
  const read = async () => {
    await using reader = await openReader(url)
    const lines: string[] = []
    for await (const plants of reader.all('plants')) {
      lines.push(...plants.map(({ id, name }) => `${id} ${name}`))
    }
    return lines.join('\n')
  }
  const content = await read().catch(async () => {
    await (await openStorage({ url }))[Symbol.asyncDispose]()
    return await read()
  })
  await inspectStore(url)
  return content
}

async function cutScene(scene: Scene, random: Random, tally: Tally) {
  using recorded = temporaryFolder()
  const calls = join(recorded.path, 'calls')
  const folder = dirname(scene.file)
  const paths = readdirSync(folder).map(name => join(folder, name))
  const found = new Map(paths.map(path => [path, readFileSync(path)]))
  const { PATH } = process.env
  await using program = launch(recording(calls, scene.command, scene.inject), {
    environment: {
      PATH,
      PORT: '0',
      HTTP_THREADS: '2',
      ACCESS_TOKENS: token,
      DATABASE_URL: `file:${scene.store}`,
    },
  })
  await scene.use?.(program)
  const ending = await program.ended
  if (ending !== 0) {
    throw new Error(
      `${scene.name} ended with ${ending}: ${program.errors()}${program.output()}`,
    )
  }

  const disk = new RecordedDisk(folder, found)
  const contents = new Map<string, Content | Error>()
  const events = parseCalls(readFileSync(calls, 'utf8').split('\n'))
  // Until the fault comes, everything is as without one.
  let hasBegun = scene.inject === undefined
  let said = ''
  let boundaries = 0
  const cut = async () => {
    // Later images would only repeat the failure.
    if (!hasBegun || tally.failures.length > 0) {
      return
    }
    boundaries++
    for (const image of imagesOf(disk, random)) {
      const content = await readOnce(scene, image, contents)
      tally.judged++
      const wrong = scene.judge(content, said)
      if (wrong) {
        tally.failures.push(`${scene.name}, power cut at fsync ${boundaries}: ${wrong}`)
      }
    }
  }
  for (const event of events) {
    if ('begins' in event) {
      said += disk.begin(event.begins) ?? ''
    } else {
      const { name, result } = event.ends
      hasBegun ||= name === 'fdatasync' && result < 0
      if (name.endsWith('sync')) {
        await cut()
      }
      disk.end(event.ends)
    }
  }
  await cut()
  if (boundaries < 3) {
    tally.failures.push(`${scene.name}: only ${boundaries} fsyncs were recorded`)
  }
  tally.boundaries += boundaries
  tally.images += contents.size
}

function* imagesOf(disk: RecordedDisk, random: Random): Iterable<Image> {
  const pieces = disk.pending()
  if (pieces <= piecesMax) {
    for (let subset = 0; subset < 2 ** pieces; subset++) {
      let piece = 0
      yield disk.image(() => (subset & (1 << piece++)) !== 0)
    }
    return
  }
  yield disk.image(() => false)
  yield disk.image(() => true)
  for (let n = 0; n < subsets; n++) {
    const chance = random.pick([0.1, 0.5, 0.9])
    yield disk.image(() => random.chance(chance))
  }
}

async function readOnce(
  scene: Scene,
  image: Image,
  seen: Map<string, Content | Error>,
): Promise<Content | Error> {
  // SQLite recreates this file from the log.
  const files = [...image].filter(([path]) => !path.endsWith('-shm'))
  const hashes = files.map(([path, content]) => `${path} ${hash('sha256', content)}`)
  const key = hashes.join()
  if (!seen.has(key)) {
    using place = temporaryFolder()
    for (const [path, content] of files) {
      writeFileSync(join(place.path, basename(path)), content)
    }
    const file = join(place.path, basename(scene.file))
    const read = async () => (existsSync(file) ? await scene.read(file) : undefined)
    seen.set(key, await read().catch((error: Error) => error))
  }
  return seen.get(key)
}
