import assert from 'node:assert/strict'
import { type Kysely, sql } from 'kysely'
import { schemaVersionOf } from './migrations.ts'
import type { Runner } from './runner.ts'
import type { Dialect } from './statements/dialect.ts'
import type {
  ChangeStatement,
  ColumnType,
  ReadStatement,
  Statement,
} from './statements/statement.ts'

/** One kind of thing in a store: its tables, their migrations, and its statements. */
export interface Entity<Port = unknown, Item = unknown> {
  /** The first table has one row for each item, and is counted. */
  readonly tables: readonly [string, ...string[]]
  /**
   * The migrations, each under the version of the schema that it produces. Never change a
   * released migration.
   */
  readonly migrations: Readonly<Record<number, Migration>>
  /**
   * How an export reads all rows, and a salvage those that are left. `null` if both leave
   * them out.
   */
  readonly rows: Rows<Item> | null
  /**
   * The column that identifies a row, and the one that names it to operators. A restore
   * names the rows that it changes.
   */
  readonly restoredBy?: { readonly key: string; readonly name: string }
  /** Compiles the statements for a database. */
  compile(dialect: Dialect): {
    /** The statements by name. An interface must be spread, because it has no index. */
    readonly statements: Readonly<Record<string, ReadStatement | ChangeStatement>>
    readonly port: (runner: Runner) => Port
  }
}

export type Migration = (db: Kysely<unknown>, dialect: Dialect) => Promise<unknown>

/** The rows of the first table, whose key is an int64 `id`. */
export interface Rows<Item> {
  /**
   * The columns of the newest version. A store of an earlier one lacks some, which are
   * then `null`.
   */
  readonly columns: Readonly<Record<string, ColumnType>>
  /** Further columns of the newest version, which are not read. */
  readonly others?: readonly string[]
  /** Returns the item of a row. */
  readonly from: (row: never) => Item
  /** Returns the item of a row that may contain anything, or throws. */
  readonly parse: (row: never) => Item
}

/** The entities of a store, by name. `persistence/src/entities.ts` lists them. */
export type Entities = Readonly<Record<string, Entity>>

/** The port of each entity, by its name. */
export type Ports<Entered extends Entities = Entities> = {
  readonly [Name in keyof Entered]: Entered[Name] extends Entity<infer Port>
    ? Port
    : never
}

/** The items of an entity, as an export reads them. */
export type ItemOf<Entered> = Entered extends Entity<unknown, infer Item> ? Item : never

/** The statements of entities and of the store itself on a database. */
export type CompiledEntities = ReturnType<typeof compileEntities>

export function compileEntities(entities: Entities, dialect: Dialect) {
  const compiled = Object.entries(entities).map(([name, entity]) => ({
    name,
    ...entity.compile(dialect),
  }))
  const tables = Object.values(entities).flatMap(entity => entity.tables)
  const [table] = tables
  assert(table !== undefined, 'a store has at least one table')
  /** The statements by which a store is checked. */
  const probes = {
    probeRead: dialect.read(
      () => sql<{ version: bigint }>`select version from schema_version`,
    ),
    /**
     * Changes no row. It needs the right to change one, and a server that accepts
     * changes.
     */
    probeWrite: dialect.change(
      'barrier',
      () => sql`delete from ${sql.table(table)} where false`,
    ),
  }

  const names = new Map<Statement, string>()
  const changeStatements = new Map<string, ChangeStatement>()
  for (const { name, statements } of [
    ...compiled,
    { name: 'store', statements: probes },
  ]) {
    for (const [ownName, statement] of Object.entries(statements)) {
      const fullName = `${name}.${ownName}`
      names.set(statement, fullName)
      if (statement.kind === 'change') {
        changeStatements.set(fullName, statement)
      }
    }
  }

  return {
    ...probes,
    /** The newest version of the schema. */
    schemaVersion: schemaVersionOf(entities),
    /** All tables, in the order in which changes lock their rows. */
    tables,
    /** The name of each statement, such as `notes.find`. */
    names,
    changeStatements,
    ports: (runner: Runner): Ports =>
      Object.fromEntries(compiled.map(({ name, port }) => [name, port(runner)])),
  }
}
