import type { ChangeStatement, Dialect, ReadStatement } from '@plant-store/engine'
import type { TokenRow } from './tables.ts'

/** The statements of tokens, which are the same on both databases. */
export interface TokenStatements {
  readonly find: ReadStatement<{ readonly hash: string }, TokenRow>
  readonly list: ReadStatement<object, TokenRow>
  /** Under a taken name, it changes nothing. */
  readonly insert: ChangeStatement<Omit<TokenRow, 'last_used_at'>>
  /** Never makes the last use earlier. */
  readonly markUsed: ChangeStatement<{ readonly hash: string; readonly usedAt: bigint }>
  readonly remove: ChangeStatement<{ readonly name: string }>
}

const byHash = { of: 'access_tokens', by: 'hash' } as const

export function tokenStatements({ tables, read, change }: Dialect): TokenStatements {
  const db = tables<{ access_tokens: TokenRow }>()
  const tokens = db
    .selectFrom('access_tokens')
    .select(['name', 'hash', 'scopes', 'created_at', 'expires_at', 'last_used_at'])
  return {
    find: read(p => tokens.where('hash', '=', p('hash'))),
    list: read(() => tokens),
    insert: change(byHash, p =>
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
    markUsed: change(byHash, p =>
      db
        .updateTable('access_tokens')
        .set({ last_used_at: p('usedAt') })
        .where('hash', '=', p('hash'))
        .where(({ eb }) =>
          eb('last_used_at', 'is', null).or('last_used_at', '<', p('usedAt')),
        ),
    ),
    // This change is a barrier because changes of tokens are ordered by hash, but a
    // removal only knows the name.
    remove: change('barrier', p =>
      db.deleteFrom('access_tokens').where('name', '=', p('name')),
    ),
  }
}
