import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StartError, temporaryFolder } from '@plant-store/harness'
import { createRandom } from '@plant-store/harness/random'
import Database from 'better-sqlite3'
import { flipBits } from './bit-flips.ts'
import { mount } from './mount.ts'
import { operationsOver } from './operations.ts'
import { type Circumstances, type Finding, figure, type Part, timeIsUp } from './part.ts'
import { connectClient, startProgram } from './program.ts'

export const storeFilesPart: Part = { name: 'store-files', share: 0.12, run: runStoreFiles }

/**
 * Starts the program on files that are no good store. What it notices it refuses in one line, and leaves every byte as
 * it was. Who notices a single bit that is wrong is counted.
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

  const refused = async (what: string, prepare: (path: string) => void) => {
    tried++
    const place = join(folder.path, `case-${tried}`)
    mkdirSync(place)
    const path = join(place, 'plants.db')
    prepare(path)
    failures.push(...(await refusalFaults(what, place, path)))
  }
  await refused('random bytes', path =>
    writeFileSync(path, Buffer.from(Array.from({ length: 8192 }, () => random.below(256)))),
  )
  await refused('a text', path => writeFileSync(path, 'These are my notes about plants.\n'.repeat(100)))
  await refused('one byte', path => writeFileSync(path, 'x'))
  await refused('a folder', path => mkdirSync(path))
  await refused("another program's database", path => {
    const other = new Database(path)
    other.exec('create table songs (title text); insert into songs values (1)')
    other.close()
  })
  await refused('a store of a newer version', path => {
    copyFileSync(sound, path)
    const newer = new Database(path)
    newer.exec('update schema_version set version = version + 1')
    newer.pragma('journal_mode = delete')
    newer.close()
  })
  for (const [what, length] of [
    ['half of a store', Math.floor(bytes.length / 2 / 4096) * 4096],
    ['half of a store and part of a page', Math.floor(bytes.length / 2 / 4096) * 4096 + 100],
    ['the first page of a store', 4096],
    ['the first 100 bytes of a store', 100],
    ['the first 50 bytes of a store', 50],
  ] as const) {
    await refused(what, path => writeFileSync(path, bytes.subarray(0, length)))
  }
  await refused('a store whose first bytes are changed', path => {
    const changed = Buffer.from(bytes)
    changed.fill('?', 0, 16)
    writeFileSync(path, changed)
  })

  // What comes after it takes half a minute on a machine that is busy.
  const many = await flipBits(folder.path, { ...circumstances, endAtMs: circumstances.endAtMs - 30_000 })
  tried += many.flips
  failures.push(...many.failures)

  // A flipped bit somewhere, a third of them in the first page: refused in one line and left alone, or taken.
  let noticed = 0
  const flips = Math.ceil(30 * circumstances.scale)
  let flip = 0
  for (; flip < flips && !timeIsUp(circumstances); flip++) {
    tried++
    const place = join(folder.path, `flip-${flip}`)
    mkdirSync(place)
    const path = join(place, 'plants.db')
    const changed = Buffer.from(bytes)
    const at = flip % 3 === 0 ? random.below(4096) : random.below(bytes.length)
    changed[at] = (changed[at] as number) ^ (1 << random.below(8))
    writeFileSync(path, changed)
    try {
      await using program = await startProgram({ databaseUrl: `file:${path}` })
      const ended = await program.end('SIGTERM')
      if (ended !== 0) failures.push(`a bit flipped at byte ${at}: it ended with ${ended}`)
    } catch (error) {
      noticed++
      if (!(error instanceof StartError) || !isOneLine(error.errors))
        failures.push(`a bit flipped at byte ${at}: ${(error as Error).message}`)
      if (!readFileSync(path).equals(changed))
        failures.push(`a bit flipped at byte ${at} was noticed, and the file changed`)
    }
  }

  // Root may write whatever the permissions are, but not to a read-only mount.
  const mountPoint = join(folder.path, 'read-only')
  mkdirSync(mountPoint)
  const mounted = mount(mountPoint, '8m')
  if (typeof mounted === 'string') skipped.push(`a file that can't be written: ${mounted}`)
  else {
    using disk = mounted
    tried++
    copyFileSync(sound, join(mountPoint, 'plants.db'))
    disk.makeReadOnly()
    failures.push(
      ...(await refusalFaults('a store that can only be read', mountPoint, join(mountPoint, 'plants.db'))),
    )
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
  const client = await connectClient(program)
  const operations = operationsOver(client)
  await Promise.all(
    Array.from({ length: 300 }, (_, n) =>
      operations.create(BigInt(n * 7919), { name: `plant ${n} `.repeat(20), tag: `${n % 5}` }),
    ),
  )
  client.close()
  await program.end('SIGTERM')
}

const isOneLine = (text: string) => /^plant-store: [^\n]+\n$/.test(text)

async function refusalFaults(what: string, place: string, path: string): Promise<string[]> {
  const before = contentsOf(place)
  try {
    await using _program = await startProgram({ databaseUrl: `file:${path}` })
    return [`${what} was taken for a store`]
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    const faults: string[] = []
    if (error.ending !== 1) faults.push(`${what}: it ended with ${error.ending}`)
    if (!isOneLine(error.errors)) faults.push(`${what}: not one line: ${error.errors}`)
    if (!error.errors.includes(path)) faults.push(`${what}: the file is not named: ${error.errors}`)
    if (contentsOf(place) !== before) faults.push(`${what}: the file was changed, or others came beside it`)
    return faults
  }
}

/** Every file in a folder with its bytes, to compare. */
function contentsOf(folder: string): string {
  return readdirSync(folder)
    .sort()
    .map(name => {
      const path = join(folder, name)
      return `${name}:${statSync(path).isDirectory() ? 'folder' : readFileSync(path).toString('base64')}`
    })
    .join('\n')
}

/** A store that another process holds is not entered at the start, and waited for later. */
async function lockedFaults(sound: string, path: string): Promise<string[]> {
  copyFileSync(sound, path)
  const faults: string[] = []
  {
    await using _holder = await holdLock(path)
    try {
      await using _program = await startProgram({ databaseUrl: `file:${path}` })
      faults.push('a store that another process holds was entered')
    } catch (error) {
      if (!(error instanceof StartError) || !isOneLine(error.errors) || error.ending !== 1)
        faults.push(`a store that another process holds: ${(error as Error).message}`)
    }
  }
  await using program = await startProgram({ databaseUrl: `file:${path}` })
  const client = await connectClient(program)
  const operations = operationsOver(client)
  {
    await using _holder = await holdLock(path)
    // Waits for as long as one connection waits for another.
    const outcome = await operations.replace(1n, { name: 'while it is locked' })
    if (outcome.is !== 'unknown') faults.push(`a change to a store that is locked: ${outcome.is}`)
    const read = await operations.read(0n)
    if (read.is !== 'done') faults.push(`a read of a store that is locked for writing: ${read.is}`)
  }
  const outcome = await operations.replace(1n, { name: 'after it was locked' })
  if (outcome.is !== 'done') faults.push(`a change to a store that was locked: ${outcome.is}`)
  client.close()
  return faults
}

/** Another process that begins a change of the store and does not end it. */
async function holdLock(path: string): Promise<AsyncDisposable> {
  const script = `
    const Database = require(${JSON.stringify(import.meta.resolve('better-sqlite3').replace('file://', ''))})
    new Database(${JSON.stringify(path)}).exec('begin immediate')
    console.log('held')
    setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  return {
    async [Symbol.asyncDispose]() {
      const exited = once(holder, 'exit')
      holder.kill('SIGKILL')
      await exited
    },
  }
}
