import type { AccessToken, Scope, TokenRepository } from '@plant-store/access'
import {
  type Dialect,
  type Entity,
  type Parameters,
  pick,
  type Runner,
} from '@plant-store/engine'
import type { Kysely } from 'kysely'
import { milliseconds, toDate } from '../dates.ts'

interface TokenRow {
  name: string
  /** SHA-256 in hexadecimal. */
  hash: string
  /** Separated by single spaces. */
  scopes: string
  /** Milliseconds since 1970, as are the others. */
  created_at: bigint
  expires_at: bigint | null
  last_used_at: bigint | null
}

const written = ['name', 'hash', 'scopes', 'created_at', 'expires_at'] as const
type Written = Pick<TokenRow, (typeof written)[number]>

export const tokens: Entity<TokenRepository> = {
  tables: ['access_tokens'],
  migrations: { 6: createTable },
  rows: null,
  restoredBy: { key: 'hash', name: 'name' },
  compile(dialect) {
    const statements = tokenStatements(dialect)
    return { statements, port: runner => createTokenRepository(runner, statements) }
  },
}

function tokenStatements(dialect: Dialect) {
  const db = dialect.tables<{ access_tokens: TokenRow }>()
  const all = db.selectFrom('access_tokens').select([...written, 'last_used_at'])
  const byHash = { of: 'access_tokens', by: 'hash' } as const
  return {
    find: dialect.read((p: Parameters<{ hash: string }>) =>
      all.where('hash', '=', p.hash),
    ),
    list: dialect.read(() => all),
    insert: dialect.change(byHash, (p: Parameters<Written>) =>
      db
        .insertInto('access_tokens')
        .values(pick(p, written))
        .onConflict(conflict => conflict.doNothing()),
    ),
    markUsed: dialect.change(byHash, (p: Parameters<{ hash: string; usedAt: bigint }>) =>
      db
        .updateTable('access_tokens')
        .set({ last_used_at: p.usedAt })
        .where('hash', '=', p.hash)
        .where(({ eb, or }) =>
          or([eb('last_used_at', 'is', null), eb('last_used_at', '<', p.usedAt)]),
        ),
    ),
    // Every order is by hash, which only the row knows.
    remove: dialect.change('barrier', (p: Parameters<{ name: string }>) =>
      db.deleteFrom('access_tokens').where('name', '=', p.name),
    ),
  }
}

function createTokenRepository(
  { submit, read }: Runner,
  statements: ReturnType<typeof tokenStatements>,
): TokenRepository {
  return {
    async find(hash) {
      const [row] = await read(statements.find, { hash })
      return row && toToken(row)
    },
    async insert({ name, scopes, createdAt, expiresAt }, hash) {
      const inserted = await submit(statements.insert, {
        name,
        hash,
        scopes: scopes.join(' '),
        created_at: milliseconds(createdAt),
        expires_at: expiresAt ? milliseconds(expiresAt) : null,
      })
      return inserted === 1 ? 'inserted' : 'name-taken'
    },
    async list() {
      const rows = await read(statements.list, {})
      // Sorted here, as databases sort text differently.
      return [...rows].sort((a, b) => (a.name < b.name ? -1 : 1)).map(toToken)
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
    scopes: scopes.split(' ').filter(Boolean) as Scope[],
    createdAt: toDate(created_at),
    ...(expires_at !== null && { expiresAt: toDate(expires_at) }),
    ...(last_used_at !== null && { lastUsedAt: toDate(last_used_at) }),
  }
}

async function createTable(
  db: Kysely<unknown>,
  { int64, tableOptions }: Dialect,
): Promise<void> {
  await db.schema
    .createTable('access_tokens')
    .addColumn('name', 'text', column => column.primaryKey().notNull())
    .addColumn('hash', 'text', column => column.unique().notNull())
    .addColumn('scopes', 'text', column => column.notNull())
    .addColumn('created_at', int64, column => column.notNull())
    .addColumn('expires_at', int64)
    .addColumn('last_used_at', int64)
    .modifyEnd(tableOptions)
    .execute()
}
