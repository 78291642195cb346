import { setImmediate } from 'node:timers/promises'
import type { CompiledEntities, Entities, Entity, Runner } from './entity.ts'
import { type StoreError, unavailable } from './errors.ts'
import { valuesOf } from './statements/statement.ts'
import type { StoreReader, StoreReport } from './types.ts'

/** What a store contains as of one moment. */
export interface ReadTransaction<Entered extends Entities = Entities>
  extends AsyncDisposable {
  readonly schemaVersion: number
  readonly compiled: CompiledEntities<Entered>
  readonly query: (
    sql: string,
    parameters?: readonly unknown[],
  ) => Promise<readonly object[]>
}

/** Returns what a transaction sees of a store. Disposal ends it. */
export function createReader<Entered extends Entities>(
  entities: Entered,
  reading: ReadTransaction<Entered>,
  translateError: (error: StoreError) => Error,
): StoreReader<Entered> {
  const { compiled, query, schemaVersion } = reading
  const refuse = () => {
    throw new Error('it is only read')
  }
  const runner: Runner = {
    bind: refuse,
    submit: refuse,
    submitAll: refuse,
    // As in a storage, the contracts of the ports prove the types of rows.
    read: (statement, given) =>
      // Only a storage ends a page at its size on SQLite. Nobody needs one here: `all` reads whole tables.
      statement.bound
        ? refuse()
        : (query(statement.sql, valuesOf(statement, given)) as Promise<never>),
  }
  const unreadable = (cause: Error): never => {
    throw translateError(unavailable(`the store cannot be read: ${cause.message}`, cause))
  }
  return {
    ...compiled.ports(runner),
    schemaVersion,
    counts: () =>
      countsIn(entities, reading).catch(unreadable) as Promise<
        StoreReport<Entered>['counts']
      >,
    all: name =>
      allIn(entities[name] as Entity<unknown, never>, {
        schemaVersion,
        query: sql => query(sql).catch(unreadable),
      }),
    [Symbol.asyncDispose]: () => reading[Symbol.asyncDispose](),
  }
}

/** Counts the rows of every entity. A store of an earlier version has none of the later ones. */
export async function countsIn(
  entities: Entities,
  { schemaVersion, query }: Pick<ReadTransaction, 'schemaVersion' | 'query'>,
): Promise<StoreReport['counts']> {
  const counts: Record<string, number> = {}
  for (const [name, entity] of Object.entries(entities)) {
    const count = `select count(*) as count from "${entity.tables[0]}"`
    const rows = isIn(entity, schemaVersion) ? await query(count) : [{ count: 0 }]
    counts[name] = Number((rows as [{ count: bigint }])[0].count)
  }
  return counts
}

/** Returns whether a store of a version has the entity's tables. */
function isIn({ migrations }: Entity, schemaVersion: number): boolean {
  return Object.keys(migrations).some(version => Number(version) <= schemaVersion)
}

/** Read at a time of a whole table. */
export const pageRows = 1_000

/** Yields all items of an entity in order of id, by pages of its key: some servers do not keep a cursor open that long. */
async function* allIn<Item>(
  entity: Entity<unknown, Item>,
  { schemaVersion, query }: Pick<ReadTransaction, 'schemaVersion' | 'query'>,
): AsyncIterable<readonly Item[]> {
  const {
    tables: [table],
    rows: reading,
  } = entity
  if (reading === null) {
    throw new Error(`${table} are not read one after another`)
  }
  if (!isIn(entity, schemaVersion)) {
    return
  }
  const [row = {}] = await query(`select * from "${table}" limit 1`)
  const select = selectList(reading.columns, Object.keys(row), column => `"${column}"`)
  let after: bigint | undefined
  for (;;) {
    // A reader faster than the disk would delay signals and timers.
    await setImmediate()
    // Quoted, as PostgreSQL would take the least id for a number without an index.
    const condition = after === undefined ? '' : `where id > '${after}'`
    const rows = await query(
      `select ${select} from "${table}" ${condition} order by id limit ${pageRows}`,
    )
    const last = rows.at(-1) as { id: bigint } | undefined
    if (last === undefined) {
      return
    }
    // Their columns are those that the entity names.
    yield rows.map(row => reading.from(row as never))
    after = last.id
  }
}

/** @param found the columns of the table. An earlier version has fewer */
export function selectList(
  columns: Readonly<Record<string, unknown>>,
  found: readonly string[],
  read: (column: string) => string,
): string {
  const selected = Object.keys(columns).map(name =>
    found.includes(name) ? `${read(name)} as "${name}"` : `null as "${name}"`,
  )
  return selected.join(', ')
}
