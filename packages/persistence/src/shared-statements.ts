import { type Compilable, type Kysely, type OnConflictBuilder, type SelectQueryBuilder, sql } from 'kysely'
import { type PlantRow, plantColumns, type Tables } from './tables.ts'

/**
 * The statements of SQLite, and those that PostgreSQL shares. Kysely compiles them once, when the program starts; each
 * database keeps them prepared and binds the parameters in the order given here. The values are placeholders.
 */
export function createStatements(db: Kysely<Tables>) {
  const plants = db.selectFrom('plants').select(plantColumns)
  const plantBytes = db
    .selectFrom('plants')
    .select(
      sql<bigint>`octet_length(${sql.ref('name')}) + coalesce(octet_length(${sql.ref('tag')}), 0)`.as(
        'bytes',
      ),
    )
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
      /** As `page` and `pageOfTag`: the bytes of its texts, which SQLite knows without reading them. */
      pageBytes: sumOf(db, plantBytes.where('id', '>=', 0n).orderBy('id').limit(1)),
      pageOfTagBytes: sumOf(
        db,
        plantBytes.where('tag', '=', '').where('id', '>=', 0n).orderBy('id').limit(1),
      ),
      /** hash */
      token: sqlOf(tokens.where('hash', '=', '')),
      tokens: sqlOf(tokens.where('name', '<>', sql.lit('')).orderBy('name')),
      /** One if there ever was a token. */
      anyToken: sqlOf(db.selectFrom('access_tokens').select('name').limit(sql.lit(1))),
    },
    /** Of a load that is kept whole or not at all. */
    keep: {
      /** the columns of a plant */
      stage: sqlOf(db.insertInto('staged').values(anyPlant).onConflict(replaceStaged)),
      keep: sqlOf(keepStaged(db)),
      replace: sqlOf(keepStaged(db).onConflict(replacePlant)),
      /** An id that is staged and taken. */
      taken: sqlOf(
        db
          .selectFrom('staged')
          .innerJoin('plants', 'plants.id', 'staged.id')
          .select('staged.id')
          .limit(sql.lit(1)),
      ),
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

function sumOf(db: Kysely<Tables>, rows: SelectQueryBuilder<Tables, 'plants', { bytes: bigint }>): string {
  return sqlOf(db.selectFrom(rows.as('page')).select(({ fn }) => fn.sum('bytes').as('bytes')))
}

function keepStaged(db: Kysely<Tables>) {
  // `where true` lets SQLite tell the conflict clause from a join.
  const staged = db.selectFrom('staged').select(plantColumns).where(sql<boolean>`true`).orderBy('id')
  return db.insertInto('plants').columns(plantColumns).expression(staged)
}

/** Of a plant whose id is taken, everything but the id becomes that of the new one. */
export function replacePlant(conflict: OnConflictBuilder<Tables, 'plants'>) {
  return conflict.column('id').doUpdateSet(({ ref }) => {
    const replaced = { name: ref('excluded.name'), tag: ref('excluded.tag') }
    return replaced satisfies Record<Exclude<keyof PlantRow, 'id'>, unknown>
  })
}

/** The same of a staged plant: Kysely's types differ by the name of the table only. */
export const replaceStaged = replacePlant as unknown as (
  conflict: OnConflictBuilder<Tables, 'staged'>,
) => ReturnType<typeof conflict.doNothing>

export function sqlOf(query: Compilable): string {
  return query.compile().sql
}

/** Whether a token's last use that is stored comes before `used.used_at`. */
export const isEarlierUse = sql<boolean>`coalesce(access_tokens.last_used_at < used.used_at, true)`
