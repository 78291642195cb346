import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hashToken } from '@plant-store/access'
import { type Plant, parsePlant } from '@plant-store/domain'
import { inspectStore, openArchive, openSnapshot, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'

let folder: string
let file: string
let url: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  file = join(folder, 'store.db')
  url = `file:${file}`
})
afterEach(() => rmSync(folder, { recursive: true }))

/** The schema as version 1 had it: written down here, so that no change of today's migrations changes it. */
const version1 = `
  create table schema_version (version integer not null) strict;
  insert into schema_version values (1);
  create table plants (id integer not null primary key, name text not null, tag text) strict;
  create index plants_by_tag on plants (tag, id);
  create table access_tokens (
    name text not null primary key, hash text not null unique, scopes text not null,
    created_at integer not null, expires_at integer
  ) strict;
  insert into plants values (-9223372036854775808, 'first', null), (9223372036854775807, 'last', '');
  insert into access_tokens values ('old', '${hashToken('secret')}', 'plants:read', 1767323045678, null);
`

const make = (...statements: string[]) => {
  const db = new Database(file)
  for (const statement of statements) db.exec(statement)
  db.close()
}
const ask = (question: string) => {
  const db = new Database(file, { readonly: true })
  const answer = db.prepare(question).raw().all()
  db.close()
  return answer
}
const fingerprint = () => createHash('sha256').update(readFileSync(file)).digest('hex')
const plant = (id: bigint, name: string, tag?: string): Plant => parsePlant({ id, name, tag })

test('a store of version 1 is brought up to date and keeps what is in it', async () => {
  make(version1)
  {
    await using storage = await openStorage({ url })
    expect(await storage.plants.find(plant(-(2n ** 63n), 'first').id)).toEqual(plant(-(2n ** 63n), 'first'))
    expect(await storage.plants.find(plant(2n ** 63n - 1n, 'last').id)).toEqual(
      plant(2n ** 63n - 1n, 'last', ''),
    )
    const old = { name: 'old', scopes: ['plants:read'], createdAt: new Date(1767323045678) }
    expect(await storage.tokens.list()).toEqual([old])
    await storage.tokens.markUsed(hashToken('secret'), new Date(1_800_000_000_000))
    expect(await storage.tokens.find(hashToken('secret'))).toEqual({
      ...old,
      lastUsedAt: new Date(1_800_000_000_000),
    })
  }
  expect(await inspectStore(url)).toMatchObject({ schemaVersion: 2, plants: 2, tokens: 1 })
})

test('a store that was brought up to date has the schema of a new one', async () => {
  const schemaOf = async () => {
    await using _storage = await openStorage({ url })
    const db = new Database(file, { readonly: true })
    const tables = db
      .prepare("select name from sqlite_schema where type = 'table' order by name")
      .pluck()
      .all()
    const columns = tables.map(table => [
      table,
      db.pragma(`table_xinfo('${table}')`),
      db.pragma(`index_list('${table}')`),
    ])
    db.close()
    return columns
  }
  make(version1)
  const upgraded = await schemaOf()
  rmSync(file)
  expect(upgraded).toEqual(await schemaOf())
})

test('several processes may bring it up to date at once, and open it again', async () => {
  make(version1)
  const open = `import { openStorage } from '@plant-store/persistence'
    await using storage = await openStorage({ url: process.argv[1] })
    await storage.check()`
  const opening = [1, 2, 3].map(() =>
    promisify(execFile)(process.execPath, ['--eval', open, url], {
      cwd: import.meta.dirname,
    }),
  )
  await Promise.all(opening)
  await using again = await openStorage({ url })
  await again.check()
  expect(ask('select version from schema_version')).toEqual([[2]])
})

test('an upgrade that fails changes nothing', async () => {
  // Somebody has added the column of version 2 by hand.
  make(version1, 'alter table access_tokens add column last_used_at text')
  const before = fingerprint()
  await expect(openStorage({ url })).rejects.toThrow(/^the store .* can not be opened: duplicate column/)
  expect(fingerprint()).toBe(before)
  expect(ask('select version from schema_version')).toEqual([[1]])
})

test.each(['journal_mode = delete', 'journal_mode = wal'])(
  'a store of a newer version is refused and left untouched (%s)',
  async mode => {
    make(`pragma ${mode}`, version1, 'update schema_version set version = 3')
    const before = fingerprint()
    const refusal = /has schema version 3, and this software knows versions up to 2: run a newer release$/
    await expect(openStorage({ url })).rejects.toThrow(refusal)
    await expect(openArchive(url)).rejects.toThrow(refusal)
    await expect(openSnapshot(url)).rejects.toThrow(refusal)
    await expect(inspectStore(url)).rejects.toThrow(refusal)
    expect(fingerprint()).toBe(before)
  },
)

test("another program's database is refused and left untouched", async () => {
  make('create table notes (text)')
  const before = fingerprint()
  await expect(openStorage({ url })).rejects.toThrow(/it holds tables of another program$/)
  await expect(openSnapshot(url)).rejects.toThrow(/it holds tables of another program$/)
  expect(fingerprint()).toBe(before)
})

test('who only reads a store of version 1 leaves it at that', async () => {
  make(version1)
  const before = fingerprint()
  {
    await using snapshot = await openSnapshot(url)
    expect(snapshot.count).toBe(2)
    for await (const plants of snapshot.plants()) {
      expect(plants).toEqual([plant(-(2n ** 63n), 'first'), plant(2n ** 63n - 1n, 'last', '')])
    }
  }
  expect(await inspectStore(url)).toMatchObject({ schemaVersion: 1, plants: 2, tokens: 1 })
  expect(fingerprint()).toBe(before)
})

test('a store that has to be there is not made', async () => {
  await expect(openStorage({ url, mustExist: true })).rejects.toThrow(`there is no store at ${file}`)
  await expect(openSnapshot(url)).rejects.toThrow(`there is no store at ${file}`)
  await expect(inspectStore(url)).rejects.toThrow(`there is no store at ${file}`)
  await expect(openStorage({ url, mustExist: true })).rejects.toThrow(`there is no store at ${file}`)
})
