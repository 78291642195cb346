import { type Compilable, type Kysely, type OnConflictBuilder, sql } from 'kysely'
import { type PlantRow, plantColumns, type Tables } from './tables.ts'

/**
 * The statements of SQLite, and those that PostgreSQL shares. Kysely compiles them once, when the program starts; each
 * database keeps them prepared and binds the parameters in the order given here. The values are placeholders.
 */
export function createStatements(db: Kysely<Tables>) {
  const plants = db.selectFrom('plants').select(plantColumns)
  const tokens = db
    .selectFrom('access_tokens')
    .select(['name', 'hash', 'scopes', 'created_at', 'expires_at', 'last_used_at'])
  const anyPlant: PlantRow = { id: 0n, name: '', tag: null }
  const anyToken = { name: '', hash: '', scopes: '', created_at: 0n, expires_at: null }

  return {
    read: {
      /** id */
      plant: sqlOf(plants.where('id', '=', 0n)),
      /** from id, limit */
      page: sqlOf(plants.where('id', '>=', 0n).orderBy('id').limit(1)),
      /** tag, from id, limit */
      pageOfTag: sqlOf(plants.where('tag', '=', '').where('id', '>=', 0n).orderBy('id').limit(1)),
      /** hash */
      token: sqlOf(tokens.where('hash', '=', '')),
      tokens: sqlOf(tokens.where('name', '<>', sql.lit('')).orderBy('name')),
      /** One if there ever was a token. */
      anyToken: sqlOf(db.selectFrom('access_tokens').select('name').limit(sql.lit(1))),
    },
    change: {
      /** the columns of a plant */
      insertPlant: sqlOf(
        db
          .insertInto('plants')
          .values(anyPlant)
          .onConflict(conflict => conflict.doNothing()),
      ),
      /** the columns of a plant */
      savePlant: sqlOf(db.insertInto('plants').values(anyPlant).onConflict(replacePlant)),
      /** id */
      removePlant: sqlOf(db.deleteFrom('plants').where('id', '=', 0n)),
      /** name, hash, scopes, created_at, expires_at */
      insertToken: sqlOf(
        db
          .insertInto('access_tokens')
          .values(anyToken)
          .onConflict(conflict => conflict.doNothing()),
      ),
      /** hash, last_used_at */
      markTokenUsed: sqlOf(
        db
          .updateTable('access_tokens')
          .from(db.selectNoFrom(({ val }) => [val('').as('hash'), val(0n).as('used_at')]).as('used'))
          .set(({ ref }) => ({ last_used_at: ref('used.used_at') }))
          .whereRef('access_tokens.hash', '=', 'used.hash')
          .where(isEarlierUse),
      ),
      /** name */
      removeToken: sqlOf(db.deleteFrom('access_tokens').where('name', '=', '')),
    },
  }
}

/** SQL by name. */
export type Statements = ReturnType<typeof createStatements>
export type ChangeStatement = keyof Statements['change']

/** Of a plant whose id is taken, everything but the id becomes that of the new one. */
export function replacePlant(conflict: OnConflictBuilder<Tables, 'plants'>) {
  return conflict
    .column('id')
    .doUpdateSet(({ ref }) =>
      Object.fromEntries(plantColumns.slice(1).map(column => [column, ref(`excluded.${column}`)])),
    )
}

export function sqlOf(query: Compilable): string {
  return query.compile().sql
}

/** Whether a token's last use that is stored comes before `used.used_at`. */
export const isEarlierUse = sql<boolean>`coalesce(access_tokens.last_used_at < used.used_at, true)`
