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
import { expect, test } from 'vitest'
import { openFilesIn, plant, snapshot, temporaryFolder } from './store-folder.ts'

/** Returns a store with a plant and a token, changed by SQL. */
async function changedStore(statements: string): Promise<string> {
  const file = join(temporaryFolder(), 'plants.db')
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    await storage.tokens.insert(
      { name: 'a', scopes: [], createdAt: new Date(0) },
      hashToken('a'),
    )
  }
  const database = new Database(file)
  database.unsafeMode()
  database.exec(statements)
  database.close()
  return file
}

const tokensBack =
  'create trigger back after delete on access_tokens begin insert into access_tokens values (old.name, old.hash, old.scopes, 0, null, null); end'

const notOfThisRelease = (reason: string) =>
  `its schema is not of this release: ${reason}`

test.each([
  [
    'a trigger',
    tokensBack,
    'it contains trigger back, and a store has only tables and indexes',
  ],
  [
    'a column with a quote in its name',
    'drop index plants_by_tag; alter table plants rename name to "na""me"',
    notOfThisRelease('no such column: "name"'),
  ],
  [
    'a column that its table makes',
    `drop table access_tokens; create table access_tokens
      (name text primary key, hash text, scopes text, created_at integer, expires_at integer, last_used_at integer as (0))`,
    notOfThisRelease('cannot UPDATE generated column "last_used_at"'),
  ],
])('a store with %s is refused, and left as it is', async (_, statements, reason) => {
  const file = await changedStore(statements)
  const before = snapshot(join(file, '..'))
  const url = `file:${file}`
  for (const open of [
    () => openStorage({ url }),
    () => openReader(url),
    () => inspectStore(url),
  ]) {
    await expect(open()).rejects.toThrow(
      `the store ${storageName(url)} cannot be opened: ${reason}`,
    )
  }
  expect(openFilesIn(file)).toEqual([])
  await expect(backUpStore(url, `${file}.backup`)).rejects.toThrow(reason)
  const target = join(temporaryFolder(), 'plants.db')
  await expect(restoreStore(`file:${target}`, file)).rejects.toThrow(reason)
  expect(existsSync(target)).toBe(false)
  expect(snapshot(join(file, '..'))).toEqual(before)
})

test('a restore replaces a store whose schema was changed', async () => {
  const file = await changedStore('')
  copyFileSync(file, `${file}.backup`)
  const database = new Database(file)
  database.exec(tokensBack)
  database.close()
  await restoreStore(`file:${file}`, `${file}.backup`, { force: true })
  expect(await inspectStore(`file:${file}`)).toMatchObject({
    counts: { plants: 1, tokens: 1 },
  })
})

test('an index and a table of somebody else change nothing for a store', async () => {
  const file = await changedStore(`
    create table _litestream_seq (id integer primary key, seq integer);
    create index plants_by_name on plants (name);
    analyze;`)
  const url = `file:${file}`
  await (await openStorage({ url }))[Symbol.asyncDispose]()
  expect(await inspectStore(url)).toMatchObject({ counts: { plants: 1, tokens: 1 } })
})
