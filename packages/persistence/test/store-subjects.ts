import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestSchema } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import pg from 'pg'
import { earlierStore } from './earlier-schemas.ts'

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
  /** Returns SQL that creates a store of an earlier version, with two plants and a token. */
  earlier(version: number): string
}

const withoutVersion = (schema: unknown) => JSON.stringify(schema).replace(/'?-?\d{5,}'?/, 'any version')

export const subjects = {
  SQLite: async () => inFile(),
  'SQLite with a WAL': async () => inFile('pragma journal_mode = wal'),
  PostgreSQL: inSchema,
} satisfies Record<string, () => Promise<Subject>>

function inFile(...first: string[]): Subject {
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
      withFile(db => db.exec([...first, ...statements].join(';')))
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
    earlier: version => earlierStore('sqlite', version),
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true })
    },
  }
}

async function inSchema(): Promise<Subject> {
  const database = await createTestSchema()
  // Logging in again for each question takes longer than the question.
  const pool = new pg.Pool({ connectionString: database.url, max: 1 })
  const ask = async (question: string) =>
    (await pool.query<unknown[]>({ text: question, rowMode: 'array' })).rows
  const [[own] = []] = await ask('select current_schema()')
  const schema = async () => {
    const definitions = [
      await ask(`
        select table_name, column_name, ordinal_position, data_type, is_nullable, column_default
        from information_schema.columns where table_schema = current_schema() order by table_name, ordinal_position`),
      await ask(`select indexdef from pg_indexes where schemaname = current_schema() order by indexname`),
      await ask(`
        select pg_get_triggerdef(pg_trigger.oid) from pg_trigger join pg_class on pg_class.oid = tgrelid
        where relnamespace = current_schema()::regnamespace and not tgisinternal order by tgname`),
      await ask(`
        select prosrc, proconfig from pg_proc
        where pronamespace = current_schema()::regnamespace order by proname`),
    ]
    return JSON.stringify(definitions).replaceAll(`${own}`, 'own')
  }
  const rows = async () => {
    const tables = await ask(`
      select table_name from information_schema.tables where table_schema = current_schema() order by table_name`)
    // Where a row is and which transaction wrote it tell of every change, also of one to the same values.
    return Promise.all(tables.map(([name]) => ask(`select ctid, xmin, * from ${name} order by ctid`)))
  }
  return {
    url: database.url,
    async run(...statements) {
      await pool.query(statements.join(';'))
    },
    ask,
    schema: async () => withoutVersion(await schema()),
    fingerprint: async () => JSON.stringify([await schema(), await rows()]),
    earlier: version => earlierStore('postgres', version),
    async [Symbol.asyncDispose]() {
      await pool.end()
      await database[Symbol.asyncDispose]()
    },
  }
}
