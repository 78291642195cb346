import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import {
  bringUpToDate,
  createStatements,
  createStorage,
  type PlantRow,
  rowsWithin,
  type Storage,
  type Tables,
} from '@plant-store/persistence/engine'
import { Kysely, SqliteDialect, sql } from 'kysely'

/** Opens a store on Node's own SQLite. */
export async function openNodeSqlite(file: string): Promise<Storage> {
  const database = new DatabaseSync(file)
  // FULL: a commit returns once it is on disk.
  database.exec('pragma journal_mode = wal; pragma synchronous = full')
  const prepare = (text: string) => {
    const statement = database.prepare(text)
    statement.setReadBigInts(true)
    const values = (parameters: readonly unknown[]) => parameters as SQLInputValue[]
    return {
      reader: statement.columns().length > 0,
      all: (parameters: readonly unknown[]) => statement.all(...values(parameters)),
      iterate: (parameters: readonly unknown[]) => statement.iterate(...values(parameters)),
      run: (parameters: readonly unknown[]) => statement.run(...values(parameters)),
    }
  }
  const prepareAll = <Name extends string>(texts: Readonly<Record<Name, string>>) =>
    Object.fromEntries(Object.entries<string>(texts).map(([name, text]) => [name, prepare(text)])) as Record<
      Name,
      ReturnType<typeof prepare>
    >
  const transact = async <Result>(work: () => Result): Promise<Awaited<Result>> => {
    database.exec('begin immediate')
    try {
      const result = await work()
      database.exec('commit')
      return result
    } catch (error) {
      if (database.isTransaction) database.exec('rollback')
      throw error
    }
  }

  const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: { prepare, close() {} } }) })
  const dialect = { int64: 'integer', tableOptions: sql`strict`, plantsByTag: sql`tag, id` } as const
  await transact(() => bringUpToDate(db, dialect))
  const statements = createStatements(db)
  const [reads, changes] = [prepareAll(statements.read), prepareAll(statements.change)]

  return createStorage({
    read: async (name, ...values) => reads[name].all(values) as never,
    readPage: async (name, textBytesMax, ...values) =>
      rowsWithin(textBytesMax, reads[name].iterate(values) as Iterable<PlantRow>),
    runTransaction: batch =>
      transact(() => batch.map(([name, ...values]) => Number(changes[name].run(values).changes))),
    batchesMax: 1,
    check: async () => void reads.tokens.all([]),
    close: () => database.close(),
  })
}
