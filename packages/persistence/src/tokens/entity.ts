import type { TokenRepository } from '@plant-store/access'
import type { Dialect, Entity } from '@plant-store/engine'
import type { Kysely } from 'kysely'
import { orderByBytes } from '../byte-order.ts'
import { notNull } from '../columns.ts'
import { createTokenRepository } from './repository.ts'
import { tokenStatements } from './statements.ts'

export const tokens: Entity<TokenRepository> = {
  tables: ['access_tokens'],
  migrations: { 1: createTable, 2: orderByBytes('access_tokens', ['name', 'hash']) },
  rows: null,
  restoredBy: { key: 'hash', name: 'name' },
  compile(dialect) {
    const statements = tokenStatements(dialect)
    return {
      statements: { ...statements },
      port: runner => createTokenRepository(runner, statements),
    }
  },
}

async function createTable(
  db: Kysely<unknown>,
  { int64, tableOptions }: Dialect,
): Promise<void> {
  await db.schema
    .createTable('access_tokens')
    .addColumn('name', 'text', column => column.primaryKey().notNull())
    .addColumn('hash', 'text', column => column.unique().notNull())
    .addColumn('scopes', 'text', notNull)
    .addColumn('created_at', int64, notNull)
    .addColumn('expires_at', int64)
    .addColumn('last_used_at', int64)
    .modifyEnd(tableOptions)
    .execute()
}
