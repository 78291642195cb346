import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestSchema } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import pg from 'pg'

/** A place for one store, and what can be done to it behind the back of this software. */
export interface Subject extends AsyncDisposable {
  readonly url: string
  run(...statements: string[]): Promise<void>
  /** The answer's rows, each as its values. */
  ask(question: string): Promise<unknown[][]>
  /** Returns a text that differs after any change of the tables or their rows. */
  fingerprint(): Promise<string>
}

export const subjects = {
  SQLite: async () => inFile(),
  PostgreSQL: inSchema,
} satisfies Record<string, () => Promise<Subject>>

function inFile(): Subject {
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
      withFile(db => db.exec(statements.join(';')))
    },
    ask: async question =>
      withFile(db => db.prepare(question).raw().all() as unknown[][]),
    fingerprint: async () =>
      createHash('sha256').update(readFileSync(file)).digest('hex'),
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
  const schema = async () => [
    await ask(`
      select table_name, column_name, ordinal_position, data_type, is_nullable, column_default
      from information_schema.columns where table_schema = current_schema() order by table_name, ordinal_position`),
    await ask(
      `select indexdef from pg_indexes where schemaname = current_schema() order by indexname`,
    ),
  ]
  const rows = async () => {
    const tables = await ask(`
      select table_name from information_schema.tables where table_schema = current_schema() order by table_name`)
    // The place of a row and the transaction that wrote it differ after every change,
    // even after one to the same values.
    return Promise.all(
      tables.map(([name]) => ask(`select ctid, xmin, * from ${name} order by ctid`)),
    )
  }
  return {
    url: database.url,
    async run(...statements) {
      await pool.query(statements.join(';'))
    },
    ask,
    fingerprint: async () => JSON.stringify([await schema(), await rows()]),
    async [Symbol.asyncDispose]() {
      await pool.end()
      await database[Symbol.asyncDispose]()
    },
  }
}
