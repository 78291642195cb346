import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { hashToken } from '@plant-store/access'
import { inspectStore, NoStoreError, openReader, openStorage, storageName } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
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

test('the SQLite of this package is newer than the bug that skips committed pages, and an older one is refused', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  await (await openStorage({ url }))[Symbol.asyncDispose]()
  const prepare = Database.prototype.prepare
  let version = '3.51.2'
  const preparing = vi.spyOn(Database.prototype, 'prepare').mockImplementation(function (
    this: Database.Database,
    sql,
  ) {
    return prepare.call(this, sql === 'select sqlite_version()' ? `select '${version}'` : sql)
  })
  onTestFinished(() => preparing.mockRestore())
  expect(await refusal(url)).toMatch(
    /: SQLite 3\.51\.2 can lose committed changes: 3\.51\.3 or newer is required$/,
  )
  version = '3.9.9'
  expect(await refusal(url)).toContain('3.9.9')
  for (version of ['3.51.3', '3.51.10', '3.60.0', '4.0.0'])
    await (await openStorage({ url }))[Symbol.asyncDispose]()
})
