import type { AccessToken, Scope, TokenRepository } from '@plant-store/access'
import type { Runner } from '@plant-store/engine'
import { milliseconds, toDate } from '../dates.ts'
import type { TokenStatements } from './statements.ts'
import type { TokenRow } from './tables.ts'

export function createTokenRepository(
  { submit, read }: Runner,
  statements: TokenStatements,
): TokenRepository {
  return {
    async find(hash) {
      const [row] = await read(statements.find, { hash })
      return row && toToken(row)
    },

    async insert({ name, scopes, createdAt, expiresAt }, hash) {
      const insertedRows = await submit(statements.insert, {
        name,
        hash,
        scopes: scopes.join(' '),
        created_at: milliseconds(createdAt),
        expires_at: expiresAt === undefined ? null : milliseconds(expiresAt),
      })
      return insertedRows === 1 ? 'inserted' : 'name-taken'
    },

    async list() {
      const rows = await read(statements.list, {})
      // Sorted here, because databases sort text differently.
      const sorted = rows.toSorted((a, b) => (a.name < b.name ? -1 : 1))
      return sorted.map(toToken)
    },

    async markUsed(hash, usedAt) {
      await submit(statements.markUsed, { hash, usedAt: milliseconds(usedAt) })
    },

    async remove(name) {
      return (await submit(statements.remove, { name })) === 1
    },
  }
}

function toToken({
  name,
  scopes,
  created_at,
  expires_at,
  last_used_at,
}: TokenRow): AccessToken {
  return {
    name,
    // Scopes were checked before they were written.
    scopes: scopes.split(' ').filter(Boolean) as Scope[],
    createdAt: toDate(created_at),
    ...(expires_at !== null && { expiresAt: toDate(expires_at) }),
    ...(last_used_at !== null && { lastUsedAt: toDate(last_used_at) }),
  }
}
