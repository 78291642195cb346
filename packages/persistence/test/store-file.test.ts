import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { hashToken } from '@plant-store/access'
import { inspectStore, NoStoreError, openReader, openStorage, storageName } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { detailedReasonOf, openWriterConnection, reasonOf } from '../src/sqlite/connection.ts'
import { plant, plantId, snapshot, temporaryFolder } from './store-folder.ts'

async function refusal(url: string, lockTimeoutMs?: number): Promise<string> {
  const { message } = await openStorage({ url, ...(lockTimeoutMs && { lockTimeoutMs }) }).then(
    () => Promise.reject(new Error('it was opened')),
    (error: Error) => error,
  )
  return message
}

describe('a store on a file', () => {
  test('keeps everything when it is opened again', async () => {
    const url = `file:${join(temporaryFolder(), 'plants.db')}`
    const plants = [plant(-(2n ** 63n), '', ''), plant(7, ' ünï\n🌱', 'x'), plant(2n ** 63n - 1n, 'last')]
    const token = {
      name: 'a',
      scopes: ['plants:read'],
      createdAt: new Date(1),
      expiresAt: new Date(2),
    } as const
    {
      await using storage = await openStorage({ url })
      for (const each of plants) await storage.plants.insert(each)
      await storage.plants.save(plant(8))
      await storage.plants.remove(plantId(8))
      await storage.tokens.insert(token, hashToken('a'))
    }
    for (let again = 0; again < 2; again++) {
      await using storage = await openStorage({ url })
      expect(await storage.plants.page({ limit: 10 })).toEqual(plants)
      expect(await storage.tokens.list()).toEqual([token])
      expect(await storage.tokens.find(hashToken('a'))).toEqual(token)
    }
  })

  test.runIf(process.platform === 'linux')('is not made where no folder can be', async () => {
    expect(await refusal('file:/proc/none/below/plants.db')).toMatch(
      /^the store \/proc\/none\/below\/plants\.db cannot be opened: no such file or folder$/,
    )
  })
})

describe('a URL of a store', () => {
  test('names a file by a path from the working directory, from the root, or as a file URL', async () => {
    const file = join(temporaryFolder(), 'with space', 'plänts.db')
    const urls = [
      `file:${file}`,
      `file:${relative(process.cwd(), file)}`,
      pathToFileURL(file).href,
      `file:${encodeURI(file)}`,
    ]
    for (const [n, url] of urls.entries()) {
      expect(storageName(url)).toBe(file)
      await using storage = await openStorage({ url })
      expect(await storage.plants.insert(plant(1)), url).toBe(n === 0 ? 'inserted' : 'id-taken')
    }
  })
})

describe('what is no store of ours is refused in one line, and left as it was:', () => {
  test.each([
    ['a text', 'Water the plants.\n'.repeat(1000)],
    ['a text shorter than a header', 'x'.repeat(99)],
    // SQLite itself takes a file of one byte for an empty one.
    ['one byte', 'x'],
    ['two bytes', 'xy'],
    ['the start of a header', 'SQLite format 3\0'],
  ])('%s', async (_, content) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'plants.db'), content)
    const before = snapshot(folder)
    const reason = /^the store .*plants\.db cannot be opened: .*not a database$/
    expect(await refusal(`file:${join(folder, 'plants.db')}`)).toMatch(reason)
    expect(snapshot(folder)).toEqual(before)
  })

  test('a folder', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'plants.db'))
    expect(await refusal(`file:${join(folder, 'plants.db')}`)).toMatch(
      /^the store .* cannot be opened: [^\n]+$/,
    )
    await expect(inspectStore(`file:${join(folder, 'plants.db')}`)).rejects.toThrow(
      /^\/.*\/plants\.db is a folder$/,
    )
    expect(readdirSync(join(folder, 'plants.db'))).toEqual([])
  })

  test('a file in the place of a folder', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'notes.txt'), 'x')
    const before = snapshot(folder)
    const url = `file:${join(folder, 'notes.txt', 'plants.db')}`
    expect(await refusal(url)).toMatch(/^the store .* cannot be opened: [^\n]+$/)
    await expect(inspectStore(url)).rejects.toThrow(/^there is no store at /)
    await expect(openReader(url)).rejects.toBeInstanceOf(NoStoreError)
    expect(snapshot(folder)).toEqual(before)
  })
})

test('a store that another program keeps locked is not opened, and one line says so', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  const other = new Database(file)
  other.exec('begin immediate')
  expect(await refusal(`file:${file}`, 100)).toMatch(/^the store .* cannot be opened: [^\n]*locked[^\n]*$/)
  other.close()
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
})

test('the writer abandons a store that stays locked for long, and refuses another file at once', () => {
  const file = join(temporaryFolder(), 'plants.db')
  const other = new Database(file)
  other.exec('create table t (a); begin immediate')
  const begun = performance.now()
  expect(() => openWriterConnection(file, 200)).toThrow(/locked/)
  expect(performance.now() - begun).toBeGreaterThan(200)
  other.close()

  writeFileSync(`${file}.txt`, 'Water the plants.\n'.repeat(1000))
  const begunAgain = performance.now()
  expect(() => openWriterConnection(`${file}.txt`, 60_000)).toThrow(/not a database/)
  expect(performance.now() - begunAgain).toBeLessThan(50_000)
})

test('the WAL is copied into the store at 32 MiB, and one that grew past 64 MiB is cut back', () => {
  const MiB = 2 ** 20
  const file = join(temporaryFolder(), 'plants.db')
  const logBytes = () => statSync(`${file}-wal`).size
  const writer = openWriterConnection(file, 4_000)
  const settings = ['synchronous', 'fullfsync', 'cache_size', 'busy_timeout']
  const set = settings.map(setting => writer.pragma(setting, { simple: true }))
  expect(set).toEqual([2n, 1n, -16384n, 4_000n])
  writer.exec('create table texts (text text)')
  const write = writer.prepare('insert into texts values (zeroblob(?))')
  for (let n = 0; n < 100; n++) write.run(MiB)
  expect(logBytes()).toBeGreaterThan(31 * MiB)
  expect(logBytes()).toBeLessThan(34 * MiB)
  write.run(80 * MiB)
  expect(logBytes()).toBeGreaterThan(80 * MiB)
  write.run(1)
  expect(logBytes()).toBe(64 * MiB)
  writer.close()
})

test.each([
  ['SQLITE_BUSY_SNAPSHOT', 'another program keeps it locked'],
  ['SQLITE_CANTOPEN_ISDIR', 'the file cannot be opened'],
  ['SQLITE_CORRUPT_INDEX', 'it is damaged'],
  ['SQLITE_FULL', 'the disk is full'],
  ['SQLITE_IOERR_FSYNC', 'the disk fails'],
  ['ENOENT', 'no such file or folder'],
  ['SQLITE_READONLY_DBMOVED', 'it may not be written'],
  ['SQLITE_NOLFS', 'other words'],
  ['NOT_SQLITE_FULL', 'other words'],
])('%s is put in words, and named in logs', (code, words) => {
  const error = Object.assign(new Error('other words'), { code })
  expect([reasonOf(error), detailedReasonOf(error)]).toEqual([words, `${words} (${code})`])
  expect([reasonOf(new Error('a defect')), detailedReasonOf(new Error('a defect'))]).toEqual([
    'a defect',
    'a defect',
  ])
})

test('a path that the system does not follow is not taken for one without a store', async () => {
  const link = join(temporaryFolder(), 'plants.db')
  symlinkSync(link, link)
  for (const open of [inspectStore, openReader])
    await expect(open(`file:${link}`)).rejects.toThrow(/^the store .* cannot be opened: ELOOP/)
})
