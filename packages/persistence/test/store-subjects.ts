import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hashToken } from '@plant-store/access'
import { createTestDatabase } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'

/** A place for one store, and what can be done to it behind the back of this software. */
export interface Subject extends AsyncDisposable {
  readonly url: string
  run(...statements: string[]): Promise<void>
  /** The answer's rows, each as its values. */
  ask(question: string): Promise<unknown[][]>
  /** Of the schema, but for the version that a migration gives to plants. */
  schema(): Promise<unknown>
  /** Of everything that is there. */
  fingerprint(): Promise<string>
  /** The schema as earlier versions had it, with plants and a token in it. */
  readonly earlier: Readonly<Record<(typeof earlierVersions)[number], string>>
}

export const earlierVersions = [1, 2, 3] as const

/** Written down here, so that no change of today's migrations changes it. A new migration adds its previous version. */
const earlier = (int64: string, strict: string, byTag: string, before = '') => {
  const version1 = `${before}
  create table schema_version (version integer not null) ${strict};
  insert into schema_version values (1);
  create table plants (id ${int64} not null primary key, name text not null, tag text) ${strict};
  create index plants_by_tag on plants (${byTag});
  create table access_tokens (
    name text not null primary key, hash text not null unique, scopes text not null,
    created_at ${int64} not null, expires_at ${int64}
  ) ${strict};
  insert into plants values (-9223372036854775808, 'first', null), (9223372036854775807, 'last', '');
  insert into access_tokens values ('old', '${hashToken('secret')}', 'plants:read', 1767323045678, null);
`
  const version2 = `${version1}
  alter table access_tokens add column last_used_at ${int64};
  update schema_version set version = 2;
`
  const version3 = `${version2}
  alter table plants add column version ${int64} not null default 7777777777777777777;
  update schema_version set version = 3;
`
  return { 1: version1, 2: version2, 3: version3 }
}

const withoutVersion = (schema: unknown) => JSON.stringify(schema).replace(/'?-?\d{5,}'?/, 'any version')

export const subjects: Record<string, () => Promise<Subject>> = {
  SQLite: async () => inFile('delete'),
  'SQLite with a log': async () => inFile('wal'),
  PostgreSQL: inDatabase,
}

function inFile(journalMode: 'delete' | 'wal'): Subject {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  const file = join(folder, 'store.db')
  const withFile = <Result>(act: (db: Database.Database) => Result): Result => {
    const db = new Database(file)
    try {
      return act(db)
    } finally {
      db.close()
    }
  }
  return {
    url: `file:${file}`,
    async run(...statements) {
      withFile(db => db.exec([`pragma journal_mode = ${journalMode}`, ...statements].join(';')))
    },
    ask: async question => withFile(db => db.prepare(question).raw().all() as unknown[][]),
    schema: async () =>
      withFile(db =>
        withoutVersion(
          db
            .prepare("select name from sqlite_schema where type = 'table' order by name")
            .pluck()
            .all()
            .map(name => [name, db.pragma(`table_xinfo('${name}')`), db.pragma(`index_list('${name}')`)])
            .concat(
              db.prepare("select sql from sqlite_schema where type = 'trigger' order by name").pluck().all(),
            ),
        ),
      ),
    fingerprint: async () => createHash('sha256').update(readFileSync(file)).digest('hex'),
    earlier: earlier('integer', 'strict', 'tag, id'),
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true })
    },
  }
}

async function inDatabase(): Promise<Subject> {
  const database = await createTestDatabase()
  const ask = async (question: string) => (await database.query(question)).map(row => Object.values(row))
  const schema = async () => [
    await ask(`
      select table_name, column_name, ordinal_position, data_type, is_nullable, column_default
      from information_schema.columns where table_schema = 'public' order by table_name, ordinal_position`),
    await ask(`select indexdef from pg_indexes where schemaname = 'public' order by indexname`),
    await ask(`select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal order by tgname`),
    await ask(
      `select prosrc, proconfig from pg_proc where pronamespace = 'public'::regnamespace order by proname`,
    ),
  ]
  const rows = async () => {
    const tables = await ask(
      `select table_name from information_schema.tables where table_schema = 'public' order by table_name`,
    )
    // Where a row is and which transaction wrote it tell of every change, also of one to the same values.
    return Promise.all(tables.map(([name]) => ask(`select ctid, xmin, * from ${name} order by ctid`)))
  }
  return {
    url: database.url,
    async run(...statements) {
      await database.query(statements.join(';'))
    },
    ask,
    schema: async () => withoutVersion(await schema()),
    fingerprint: async () => JSON.stringify([await schema(), await rows()]),
    earlier: earlier(
      'bigint',
      '',
      'substr(tag, 1, 200), id',
      'create table migration_lock (id integer primary key); insert into migration_lock values (1);',
    ),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
