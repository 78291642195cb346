import {
  type AliasedExpression,
  type Compilable,
  type Kysely,
  type OnConflictBuilder,
  type SelectQueryBuilder,
  sql,
} from 'kysely'
import {
  type PlantRow,
  plantColumns,
  rowColumns,
  type Tables,
  textBytesInSql,
  type VersionedRow,
} from './tables.ts'
import { sqliteWebhooks, webhookStatements } from './webhook-statements.ts'

/**
 * Returns the statements of SQLite and those that PostgreSQL shares. Kysely compiles them once at the start, and each
 * database keeps them prepared. Parameters are bound in the order of the placeholders.
 */
export function createStatements(db: Kysely<Tables>, webhookDialect = sqliteWebhooks) {
  const webhooks = webhookStatements(db, webhookDialect)
  const plants = db.selectFrom('plants').select(plantColumns)
  const page = plants.where('id', '>=', 0n).orderBy('id').limit(1)
  const pageOfTag = plants.where('tag', '=', '').where('id', '>=', 0n).orderBy('id').limit(1)
  const tokens = db
    .selectFrom('access_tokens')
    .select(['name', 'hash', 'scopes', 'created_at', 'expires_at', 'last_used_at'])
  const plantPlaceholders = Object.fromEntries(
    rowColumns.map(column => [column, 0n]),
  ) as unknown as VersionedRow
  const tokenPlaceholders = { name: '', hash: '', scopes: '', created_at: 0n, expires_at: null }
  const expected = [...rowColumns, 'expected'].map(column => sql`${0n} as ${sql.ref(column)}`)
  const expectedPlaceholders = sql<ExpectedRow>`(select ${sql.join(expected)})`
  const usePlaceholders = db.selectNoFrom(({ val }) => [val('').as('hash'), val(0n).as('used_at')]).as('used')

  return {
    read: {
      ...webhooks.read,
      ...compiled({
        plant: plants.select('version').where('id', '=', 0n),
        page,
        pageOfTag,
        /** The size of the texts of `page` and `pageOfTag`, which SQLite knows without reading them. */
        pageBytes: bytesOf(db, page),
        pageOfTagBytes: bytesOf(db, pageOfTag),
        token: tokens.where('hash', '=', ''),
        tokens: tokens.orderBy('name'),
      }),
    },
    change: {
      ...webhooks.change,
      ...compiled({
        insertPlant: db.insertInto('plants').values(plantPlaceholders).onConflict(ignoreRow),
        savePlant: db.insertInto('plants').values(plantPlaceholders).onConflict(replacePlant),
        savePlantIf: saveExpected(db, expectedPlaceholders.as<'given'>(sql`given`)),
        removePlant: db.deleteFrom('plants').where('id', '=', 0n),
        removePlantIf: db.deleteFrom('plants').where('id', '=', 0n).where('version', '=', 0n),
        insertToken: db.insertInto('access_tokens').values(tokenPlaceholders).onConflict(ignoreRow),
        markTokenUsed: db
          .updateTable('access_tokens')
          .from(usePlaceholders)
          .set(({ ref }) => ({ last_used_at: ref('used.used_at') }))
          .whereRef('access_tokens.hash', '=', 'used.hash')
          .where(isEarlierUse),
        removeToken: db.deleteFrom('access_tokens').where('name', '=', ''),
      }),
    },
  }
}

export type Statements = ReturnType<typeof createStatements>
export type ChangeStatement = keyof Statements['change']

export function compiled<Name extends string>(
  queries: Readonly<Record<Name, Compilable>>,
): Record<Name, string> {
  const entries = Object.entries<Compilable>(queries).map(([name, query]) => [name, query.compile().sql])
  return Object.fromEntries(entries)
}

function bytesOf(db: Kysely<Tables>, page: SelectQueryBuilder<Tables, 'plants', PlantRow>) {
  const bytes = sql<bigint>`${sql.raw(textBytesInSql)}`.as('bytes')
  return db
    .selectFrom(page.clearSelect().select(bytes).as('page'))
    .select(({ fn }) => fn.sum('bytes').as('bytes'))
}

export function ignoreRow<Table extends keyof Tables>(conflict: OnConflictBuilder<Tables, Table>) {
  return conflict.doNothing()
}

export function replacePlant(conflict: OnConflictBuilder<Tables, 'plants'>) {
  return conflict.column('id').doUpdateSet(columnsOf('excluded'))
}

/** The new values of a plant, and its expected version. */
export interface ExpectedRow extends VersionedRow {
  expected: bigint
}

export function saveExpected(db: Kysely<Tables>, given: AliasedExpression<ExpectedRow, 'given'>) {
  return db
    .updateTable('plants')
    .from(given)
    .set(columnsOf('given'))
    .whereRef('plants.id', '=', 'given.id')
    .whereRef('plants.version', '=', 'given.expected')
}

/** Returns all columns but the key, from another table. */
function columnsOf(table: 'excluded' | 'given') {
  const columns = rowColumns.filter(column => column !== 'id')
  return Object.fromEntries(columns.map(column => [column, sql.ref(`${table}.${column}`)]))
}

export const isEarlierUse = sql<boolean>`coalesce(access_tokens.last_used_at < used.used_at, true)`
