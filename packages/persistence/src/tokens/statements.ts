import type { Dialect, Parameter } from '@plant-store/engine'
import { sql } from 'kysely'
import type { TokenRow } from './tables.ts'

const byHash = { of: 'access_tokens', by: 'hash' } as const

export type TokenStatements = ReturnType<typeof tokenStatements>

/** Returns the statements of tokens, which are the same on both databases. */
export function tokenStatements({ tables, read, change }: Dialect) {
  const db = tables<{ access_tokens: TokenRow }>()
  const tokens = db
    .selectFrom('access_tokens')
    .select(['name', 'hash', 'scopes', 'created_at', 'expires_at', 'last_used_at'])
  return {
    find: read((p: Parameter<Pick<TokenRow, 'hash'>>) =>
      tokens.where('hash', '=', p('hash')),
    ),
    list: read(() => tokens),
    /** Under a taken name, it changes nothing. */
    insert: change(byHash, (p: Parameter<Omit<TokenRow, 'last_used_at'>>) =>
      db
        .insertInto('access_tokens')
        .values({
          name: p('name'),
          hash: p('hash'),
          scopes: p('scopes'),
          created_at: p('created_at'),
          expires_at: p('expires_at'),
        })
        .onConflict(conflict => conflict.doNothing()),
    ),
    /** Never makes the last use earlier. */
    markUsed: change(byHash, (p: Parameter<{ hash: string; usedAt: bigint }>) =>
      db
        .updateTable('access_tokens')
        .set({ last_used_at: p('usedAt') })
        .where('hash', '=', p('hash'))
        .where(sql<boolean>`("last_used_at" is null or "last_used_at" < ${p('usedAt')})`),
    ),
    // This change is a barrier because changes of tokens are ordered by hash, but a
    // removal only knows the name.
    remove: change('barrier', (p: Parameter<Pick<TokenRow, 'name'>>) =>
      db.deleteFrom('access_tokens').where('name', '=', p('name')),
    ),
  }
}
