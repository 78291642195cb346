import type { AccessToken, Scope, TokenRepository } from '@plant-store/access'
import { sql } from 'kysely'
import { milliseconds, toDate } from '../schema/tables.ts'
import type { StatementRunner } from './statements.ts'

export interface TokenRow {
  readonly name: string
  /** SHA-256 in hexadecimal. */
  readonly hash: string
  /** Separated by single spaces. */
  readonly scopes: string
  /** Milliseconds since 1970, as are the others. */
  readonly created_at: bigint
  readonly expires_at: bigint | null
  readonly last_used_at: bigint | null
}

const tokens = sql<TokenRow>`select name, hash, scopes, created_at, expires_at, last_used_at from access_tokens`

export const tokenReads = {
  token: ({ hash }: Pick<TokenRow, 'hash'>) => sql<TokenRow>`${tokens} where hash = ${hash}`,
  tokens: () => tokens,
}

export const tokenChanges = {
  insertToken: ({ name, hash, scopes, created_at, expires_at }: Omit<TokenRow, 'last_used_at'>) => sql`
    insert into access_tokens (name, hash, scopes, created_at, expires_at)
    values (${name}, ${hash}, ${scopes}, ${created_at}, ${expires_at}) on conflict do nothing`,
  markTokenUsed: ({ hash, usedAt }: Pick<TokenRow, 'hash'> & { readonly usedAt: bigint }) => sql`
    update access_tokens set last_used_at = ${usedAt}
    where hash = ${hash} and coalesce(last_used_at < ${usedAt}, true)`,
  removeToken: ({ name }: Pick<TokenRow, 'name'>) => sql`delete from access_tokens where name = ${name}`,
}

export function createTokenRepository({
  changeOf,
  submit,
  read,
}: StatementRunner<typeof tokenReads, typeof tokenChanges>): TokenRepository {
  return {
    async find(hash) {
      const [row] = await read('token', { hash })
      return row && toToken(row)
    },
    async insert({ name, scopes, createdAt, expiresAt }, hash) {
      const insert = changeOf('insertToken', {
        name,
        hash,
        scopes: scopes.join(' '),
        created_at: milliseconds(createdAt),
        expires_at: expiresAt ? milliseconds(expiresAt) : null,
      })
      return (await submit(insert)) === 1 ? 'inserted' : 'name-taken'
    },
    async list() {
      const rows = await read('tokens', {})
      // Sorted here, as databases sort text differently.
      return [...rows].sort((a, b) => (a.name < b.name ? -1 : 1)).map(toToken)
    },
    async markUsed(hash, usedAt) {
      await submit(changeOf('markTokenUsed', { hash, usedAt: milliseconds(usedAt) }))
    },
    async remove(name) {
      return (await submit(changeOf('removeToken', { name }))) === 1
    },
  }
}

function toToken({ name, scopes, created_at, expires_at, last_used_at }: TokenRow): AccessToken {
  return {
    name,
    scopes: scopes.split(' ').filter(Boolean) as Scope[],
    createdAt: toDate(created_at),
    ...(expires_at !== null && { expiresAt: toDate(expires_at) }),
    ...(last_used_at !== null && { lastUsedAt: toDate(last_used_at) }),
  }
}
