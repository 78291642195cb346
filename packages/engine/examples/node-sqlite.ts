import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import {
  bringUpToDate,
  type Change,
  type ChangeStatement,
  compileEntities,
  createStorage,
  type Entities,
  readRows,
  type Storage,
  sqliteDialect,
  valuesOf,
} from '@plant-store/engine'
import { Kysely, SqliteDialect } from 'kysely'

/** Opens a store of these entities on Node's own SQLite. */
export async function openNodeSqlite<Entered extends Entities>(
  file: string,
  entities: Entered,
): Promise<Storage<Entered>> {
  const { db, prepared, transact, close } = connect(file)
  await transact(() => bringUpToDate(entities, db, sqliteDialect))
  const compiled = compileEntities(entities, sqliteDialect)
  const run = ([name, ...values]: Change) => {
    const { sql, before } = compiled.changeStatements.get(name) as ChangeStatement
    if (before !== undefined && prepared(before.ifAny).all([]).length > 0)
      for (const each of before.sql) prepared(each).run(values)
    return Number(prepared(sql).run(values).changes)
  }
  return createStorage({
    compiled,
    read: async (statement, given) =>
      readRows(statement, given, {
        all: (each, values) => prepared(each.sql).all(valuesOf(each, values)),
        iterate: (each, values) => prepared(each.sql).iterate(valuesOf(each, values)),
      }),
    runGroup: group => transact(() => group.map(run)),
    groupsMax: 1,
    check: async () => void prepared(compiled.probeRead.sql).all([]),
    close,
  })
}

function connect(file: string) {
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
  const statements = new Map<string, ReturnType<typeof prepare>>()
  return {
    /** Runs the migrations. */
    db: new Kysely<unknown>({ dialect: new SqliteDialect({ database: { prepare, close() {} } }) }),
    /** Prepares a statement once. */
    prepared(text: string) {
      const found = statements.get(text) ?? prepare(text)
      statements.set(text, found)
      return found
    },
    async transact<Result>(work: () => Result): Promise<Awaited<Result>> {
      database.exec('begin immediate')
      try {
        const result = await work()
        database.exec('commit')
        return result
      } catch (error) {
        if (database.isTransaction) database.exec('rollback')
        throw error
      }
    },
    close: () => database.close(),
  }
}
