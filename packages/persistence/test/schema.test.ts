import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashToken } from '@plant-store/access'
import {
  backUpStore,
  inspectStore,
  openReader,
  openStorage,
  restoreStore,
  storageName,
} from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { earlierVersions } from './earlier-schemas.ts'
import { plant, snapshot, temporaryFolder } from './store-folder.ts'
import { subjects } from './store-subjects.ts'

/** Returns a store with a plant and a token, changed by SQL. */
async function changedStore(statements: string): Promise<string> {
  const file = join(temporaryFolder(), 'plants.db')
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    await storage.tokens.insert({ name: 'a', scopes: [], createdAt: new Date(0) }, hashToken('a'))
  }
  const database = new Database(file)
  database.unsafeMode()
  database.exec(statements)
  database.close()
  return file
}

const tokensBack =
  'create trigger back after delete on access_tokens begin insert into access_tokens values (old.name, old.hash, old.scopes, 0, null, null); end'

test.each([
  ['a trigger on tokens', tokensBack, 'trigger back'],
  [
    'a trigger on plants',
    'create trigger none before insert on plants begin select raise(ignore); end',
    'trigger none',
  ],
  [
    'a view in the place of a table',
    'drop table outbox; create view outbox as select 1 as id',
    'view outbox, table outbox, index outbox_due',
  ],
  ['an index that refuses plants', 'create unique index one on plants (name)', 'index one'],
  ['no index of tags', 'drop index plants_by_tag', 'index plants_by_tag'],
  ['a table of another program', 'create table songs (title text)', 'table songs'],
  [
    'another trigger with the name of ours',
    'create trigger announce_added_plant after insert on plants begin delete from plants; end',
    'trigger announce_added_plant',
  ],
  [
    "a trigger on a table of Litestream's",
    'create table _litestream_seq (id integer); create trigger seq after insert on _litestream_seq begin delete from plants; end',
    'trigger seq',
  ],
])('a store with %s is refused, and left as it is', async (_, statements, named) => {
  const file = await changedStore(statements)
  const before = snapshot(join(file, '..'))
  const url = `file:${file}`
  const reason = `its schema is not as the releases make it (${named})`
  for (const open of [() => openStorage({ url }), () => openReader(url), () => inspectStore(url)])
    await expect(open()).rejects.toThrow(`the store ${storageName(url)} cannot be opened: ${reason}`)
  await expect(backUpStore(url, `${file}.backup`)).rejects.toThrow(reason)
  const target = `file:${join(temporaryFolder(), 'plants.db')}`
  {
    await using storage = await openStorage({ url: target })
    await storage.plants.insert(plant(7))
  }
  await expect(restoreStore(target, file, { force: true })).rejects.toThrow(reason)
  expect(await inspectStore(target)).toMatchObject({ counts: { plants: 1, tokens: 0 } })
  expect(snapshot(join(file, '..'))).toEqual(before)
})

test('a restore replaces a store whose schema was changed', async () => {
  const file = await changedStore('')
  copyFileSync(file, `${file}.backup`)
  const database = new Database(file)
  database.exec(tokensBack)
  database.close()
  await restoreStore(`file:${file}`, `${file}.backup`, { force: true })
  expect(await inspectStore(`file:${file}`)).toMatchObject({ counts: { plants: 1, tokens: 1 } })
})

test('tables of Litestream and figures for the planner are no change', async () => {
  const file = await changedStore(`
    create table _litestream_seq (id integer primary key, seq integer);
    create table _litestream_lock (id integer);
    analyze;`)
  const url = `file:${file}`
  await (await openStorage({ url }))[Symbol.asyncDispose]()
  expect(await inspectStore(url)).toMatchObject({ counts: { plants: 1, tokens: 1 } })
})

test.each(earlierVersions)(
  'a trigger in a store of version %i does not run during its upgrade',
  async version => {
    await using store = await subjects.SQLite()
    const trigger = `create trigger announce_added_plant after delete on access_tokens begin delete from plants; end`
    await store.run(store.earlier(version), trigger)
    await expect(openStorage({ url: store.url })).rejects.toThrow('(trigger announce_added_plant)')
    await store.run(
      'drop trigger announce_added_plant',
      'create trigger announce_added_plant after insert on plants begin delete from plants; end',
    )
    await using storage = await openStorage({ url: store.url })
    await storage.plants.insert(plant(5))
    expect(await storage.plants.page({ limit: 10 })).toHaveLength(3)
  },
)
