import type { Compilable, Kysely } from 'kysely'
import type { Tables } from './tables.ts'

/**
 * Every statement that runs while the service runs, written once for both dialects. Kysely writes the SQL at start;
 * the adapters keep it prepared and bind the parameters in the order given here.
 */
export function writeStatements(db: Kysely<Tables>) {
  const plants = db.selectFrom('plants').select(['id', 'name', 'tag'])
  const tokens = db.selectFrom('access_tokens').select(['name', 'scopes', 'created_at', 'expires_at'])
  const anyPlant = { id: 0n, name: '', tag: null }
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
      tokens: sqlOf(tokens.orderBy('name')),
    },
    write: {
      /** id, name, tag */
      insertPlant: sqlOf(
        db
          .insertInto('plants')
          .values(anyPlant)
          .onConflict(conflict => conflict.doNothing()),
      ),
      /** id, name, tag */
      savePlant: sqlOf(
        db
          .insertInto('plants')
          .values(anyPlant)
          .onConflict(conflict =>
            conflict
              .column('id')
              .doUpdateSet(({ ref }) => ({ name: ref('excluded.name'), tag: ref('excluded.tag') })),
          ),
      ),
      /** id */
      removePlant: sqlOf(db.deleteFrom('plants').where('id', '=', 0n)),
      /** name, hash, scopes, created_at, expires_at */
      insertToken: sqlOf(
        db
          .insertInto('access_tokens')
          .values(anyToken)
          .onConflict(conflict => conflict.doNothing()),
      ),
      /** name */
      removeToken: sqlOf(db.deleteFrom('access_tokens').where('name', '=', '')),
    },
  }
}

/** SQL text by name: plain data, so that only the thread that opens a store needs to load Kysely. */
export type Statements = ReturnType<typeof writeStatements>
export type WriteStatement = keyof Statements['write']

export function sqlOf(query: Compilable): string {
  return query.compile().sql
}
