import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { inspectStore, NoStoreError, openReader, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { snapshot, temporaryFolder } from './store-folder.ts'

async function refusal(url: string, lockTimeoutMs?: number): Promise<string> {
  const { message } = await openStorage({ url, ...(lockTimeoutMs && { lockTimeoutMs }) }).then(
    () => Promise.reject(new Error('it was opened')),
    (error: Error) => error,
  )
  return message
}

test.runIf(process.platform === 'linux')('a store is not made where no folder can be', async () => {
  expect(await refusal('file:/proc/none/below/plants.db')).toMatch(
    /^the store \/proc\/none\/below\/plants\.db cannot be opened: no such file or folder$/,
  )
})

describe('what is no store of ours is refused in one line, and left as it was:', () => {
  test.each([
    ['a text', 'Water the plants.\n'.repeat(1000)],
    // SQLite itself takes it for an empty one.
    ['one byte', 'x'],
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

test.each(['pipe', '/dev/null'])('%s is no store, and opening it does not wait', async name => {
  const folder = temporaryFolder()
  execFileSync('mkfifo', [join(folder, 'pipe')])
  const url = `file:${resolve(folder, name)}`
  expect(await refusal(url)).toMatch(/^the store .* cannot be opened: it is not a file$/)
  for (const open of [openReader, inspectStore]) await expect(open(url)).rejects.toThrow(/ is not a file$/)
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
  version = '3.51.10'
  await (await openStorage({ url }))[Symbol.asyncDispose]()
})
