import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StartError, temporaryFolder } from '@plant-store/harness'
import { createRandom } from '@plant-store/harness/random'
import Database from 'better-sqlite3'
import { flipBit, flipBits } from './bit-flips.ts'
import { mount } from './mount.ts'
import { type Circumstances, type Finding, figure, type Part, timeIsUp } from './part.ts'
import { startProgram } from './program.ts'

export const storeFilesPart: Part = { name: 'store-files', share: 0.12, run: runStoreFiles }

/**
 * Starts the program on files that are not a valid store. It must refuse what it notices in one line, and leave every
 * byte unchanged. Counts who notices a single flipped bit.
 */
export async function runStoreFiles(circumstances: Circumstances): Promise<Finding> {
  const random = createRandom(circumstances.seed)
  const failures: string[] = []
  const skipped: string[] = []
  let tried = 0
  using folder = temporaryFolder()
  const sound = join(folder.path, 'sound.db')
  await makeStore(sound)
  const bytes = readFileSync(sound)
  const half = Math.floor(bytes.length / 2 / 4096) * 4096

  const changedBySql = (statements: string) => (path: string) => {
    const database = new Database(path)
    database.exec(statements)
    database.close()
  }
  const noStores: Readonly<Record<string, Buffer | string | ((path: string) => void)>> = {
    'random bytes': Buffer.from(Array.from({ length: 8192 }, () => random.below(256))),
    'a text': 'These are my notes about plants.\n'.repeat(100),
    'one byte': 'x',
    'a folder': path => mkdirSync(path),
    "another program's database": changedBySql(
      'create table songs (title text); insert into songs values (1)',
    ),
    'a store of a newer version': path => {
      copyFileSync(sound, path)
      changedBySql('update schema_version set version = version + 1; pragma journal_mode = delete')(path)
    },
    'half of a store': bytes.subarray(0, half),
    'half of a store and part of a page': bytes.subarray(0, half + 100),
    'the first page of a store': bytes.subarray(0, 4096),
    'the first 100 bytes of a store': bytes.subarray(0, 100),
    'the first 50 bytes of a store': bytes.subarray(0, 50),
    'a store whose first bytes are changed': Buffer.from(bytes).fill('?', 0, 16),
  }
  for (const [what, content] of Object.entries(noStores)) {
    tried++
    const place = join(folder.path, `case-${tried}`)
    mkdirSync(place)
    const path = join(place, 'plants.db')
    if (typeof content === 'function') content(path)
    else writeFileSync(path, content)
    failures.push(...(await refusalFaults(what, place)))
  }

  // The rest takes half a minute on a busy machine.
  const many = await flipBits(folder.path, { ...circumstances, endAtMs: circumstances.endAtMs - 30_000 })
  tried += many.times
  failures.push(...many.failures)

  // Flips a bit, in a third of the cases in the first page. The program refuses the file in one line and
  // leaves it unchanged, or accepts it.
  let noticed = 0
  const flips = Math.ceil(30 * circumstances.scale)
  let flip = 0
  for (; flip < flips && !timeIsUp(circumstances); flip++) {
    tried++
    const place = join(folder.path, `flip-${flip}`)
    mkdirSync(place)
    const path = join(place, 'plants.db')
    const at = random.below(flip % 3 === 0 ? 4096 : bytes.length)
    const changed = flipBit(bytes, at, random)
    writeFileSync(path, changed)
    const fail = (what: string) => failures.push(`a bit flipped at byte ${at}: ${what}`)
    try {
      await using program = await startProgram({ databaseUrl: `file:${path}` })
      const ended = await program.end('SIGTERM')
      if (ended !== 0) fail(`it ended with ${ended}`)
    } catch (error) {
      noticed++
      if (!(error instanceof StartError) || !isOneLine(error.errors)) fail((error as Error).message)
      if (!readFileSync(path).equals(changed)) fail('it was noticed, and the file changed')
    }
  }

  // Root can write despite permissions, but not to a read-only mount.
  const mountPoint = join(folder.path, 'read-only')
  mkdirSync(mountPoint)
  const mounted = mount(mountPoint, '8m')
  if (typeof mounted === 'string') skipped.push(`a file that can't be written: ${mounted}`)
  else {
    using disk = mounted
    tried++
    copyFileSync(sound, join(mountPoint, 'plants.db'))
    disk.makeReadOnly()
    failures.push(...(await refusalFaults('a store that can only be read', mountPoint)))
  }

  tried += 2
  failures.push(...(await lockedFaults(sound, join(folder.path, 'locked.db'))))
  return {
    tried: `${figure(tried)} files; ${many.tried}; ${figure(flip)} of ${figure(flips)} starts with one in a small store, ${noticed} refused`,
    times: tried,
    failures,
    skipped,
  }
}

async function makeStore(path: string): Promise<void> {
  await using program = await startProgram({ databaseUrl: `file:${path}` })
  const plants = Array.from({ length: 300 }, (_, n) =>
    program.operations.create(BigInt(n * 7919), { name: `plant ${n} `.repeat(20), tag: `${n % 5}` }),
  )
  await Promise.all(plants)
  await program.end('SIGTERM')
}

const isOneLine = (text: string) => /^plant-store: [^\n]+\n$/.test(text)

/** @param place a folder with only the file */
async function refusalFaults(what: string, place: string): Promise<string[]> {
  const path = join(place, 'plants.db')
  const before = contentsOf(place)
  try {
    await using _program = await startProgram({ databaseUrl: `file:${path}` })
    return [`${what} was taken for a store`]
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    const { ending, errors } = error
    const faults: string[] = []
    if (ending !== 1) faults.push(`it ended with ${ending}`)
    if (!isOneLine(errors)) faults.push(`not one line: ${errors}`)
    if (!errors.includes(path)) faults.push(`the file is not named: ${errors}`)
    if (contentsOf(place) !== before) faults.push('the file was changed, or others came beside it')
    return faults.map(fault => `${what}: ${fault}`)
  }
}

/** Returns every file in a folder with its bytes. */
function contentsOf(folder: string): string {
  const files = readdirSync(folder).map(name => {
    const path = join(folder, name)
    return [name, statSync(path).isDirectory() ? 'folder' : readFileSync(path, 'base64')]
  })
  return JSON.stringify(files)
}

/** Another process holds the store: the start refuses it, and a change waits for it. */
async function lockedFaults(sound: string, path: string): Promise<string[]> {
  copyFileSync(sound, path)
  const faults: string[] = []
  {
    using _holder = holdLock(path)
    try {
      await using _program = await startProgram({ databaseUrl: `file:${path}` })
      faults.push('a store that another process holds was entered')
    } catch (error) {
      if (!(error instanceof StartError) || !isOneLine(error.errors) || error.ending !== 1)
        faults.push(`a store that another process holds: ${(error as Error).message}`)
    }
  }
  await using program = await startProgram({ databaseUrl: `file:${path}` })
  const { operations } = program
  {
    using _holder = holdLock(path)
    // Waits as long as one connection waits for another.
    const { is } = await operations.replace(1n, { name: 'while it is locked' })
    if (is !== 'unknown') faults.push(`a change to a store that is locked: ${is}`)
    const read = await operations.read(0n)
    if (read.is !== 'done') faults.push(`a read of a store that is locked for writing: ${read.is}`)
  }
  const { is } = await operations.replace(1n, { name: 'after it was locked' })
  if (is !== 'done') faults.push(`a change to a store that was locked: ${is}`)
  return faults
}

/** Begins a change of the store in this process, without ending it. */
function holdLock(path: string): Disposable {
  const database = new Database(path)
  database.exec('begin immediate')
  return { [Symbol.dispose]: () => database.close() }
}
