import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { hashToken } from '@plant-store/access'
import { storageName } from '@plant-store/engine'
import {
  backUpStore,
  inspectStore,
  openReader,
  openStorage,
  restoreStore,
} from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { openFilesIn, plant, snapshot, temporaryFolder } from './store-folder.ts'

/** Returns the file of a store with a plant and a token, changed by SQL. */
async function changedStore(statements: string): Promise<string> {
  const file = join(temporaryFolder(), 'plants.db')
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    const token = { name: 'a', scopes: [], createdAt: new Date(0) }
    await storage.tokens.insert(token, hashToken('a'))
  }
  changeBySql(file, statements)
  return file
}

function changeBySql(file: string, statements: string): void {
  const database = new Database(file)
  database.unsafeMode()
  database.exec(statements)
  database.close()
}

const bringBackTokens = `
  create trigger back after delete on access_tokens
  begin
    insert into access_tokens
    values (old.name, old.hash, old.scopes, 0, null, null);
  end`

const computeLastUse = `
  drop table access_tokens;
  create table access_tokens (
    name text primary key, hash text, scopes text, created_at integer,
    expires_at integer, last_used_at integer as (0)
  )`

const quoteName = `
  drop index plants_by_tag;
  alter table plants rename name to "na""me"`

describe.each([
  {
    what: 'a trigger',
    statements: bringBackTokens,
    reason: 'it contains trigger back, and a store has only tables and indexes',
  },
  {
    what: 'a column with a quote in its name',
    statements: quoteName,
    reason: 'its schema is not of this release: no such column: "name"',
  },
  {
    what: 'a column that its table computes',
    statements: computeLastUse,
    reason:
      'its schema is not of this release: cannot UPDATE generated column "last_used_at"',
  },
])('a store with $what', ({ statements, reason }) => {
  test.each([
    { verb: 'opened', act: (url: string) => openStorage({ url }) },
    { verb: 'read', act: openReader },
    { verb: 'inspected', act: inspectStore },
  ])('is not $verb, and left as it is', async ({ act }) => {
    const file = await changedStore(statements)
    const url = `file:${file}`
    const before = snapshot(join(file, '..'))

    const message = `the store ${storageName(url)} cannot be opened: ${reason}`
    await expect(act(url)).rejects.toThrow(message)

    expect(openFilesIn(file)).toEqual([])
    expect(snapshot(join(file, '..'))).toEqual(before)
  })

  test('is neither backed up nor restored', async () => {
    const file = await changedStore(statements)
    const target = join(temporaryFolder(), 'plants.db')

    await expect(backUpStore(`file:${file}`, `${file}.backup`)).rejects.toThrow(reason)
    await expect(restoreStore(`file:${target}`, file)).rejects.toThrow(reason)

    expect(existsSync(`${file}.backup`)).toBe(false)
    expect(existsSync(target)).toBe(false)
  })
})

test('a restore replaces a store whose schema was changed', async () => {
  const file = await changedStore('')
  copyFileSync(file, `${file}.backup`)
  changeBySql(file, bringBackTokens)

  await restoreStore(`file:${file}`, `${file}.backup`, { force: true })

  const { counts } = await inspectStore(`file:${file}`)
  expect(counts).toMatchObject({ plants: 1, tokens: 1 })
})

test('an index and a table of somebody else change nothing for a store', async () => {
  const file = await changedStore(`
    create table _litestream_seq (id integer primary key, seq integer);
    create index plants_by_name on plants (name);
    analyze;`)
  const url = `file:${file}`

  await (await openStorage({ url }))[Symbol.asyncDispose]()

  const { counts } = await inspectStore(url)
  expect(counts).toMatchObject({ plants: 1, tokens: 1 })
})
