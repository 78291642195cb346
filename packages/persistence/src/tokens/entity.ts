import type { TokenRepository } from '@plant-store/access'
import type { Dialect, Entity } from '@plant-store/engine'
import { type Kysely, sql } from 'kysely'
import { orderByBytes } from '../byte-order.ts'
import { createTokenRepository } from './repository.ts'
import { tokenStatements } from './statements.ts'

export const tokens: Entity<TokenRepository> = {
  tables: ['access_tokens'],
  migrations: { 1: createTable, 2: orderByBytes({ access_tokens: ['name', 'hash'] }) },
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

async function createTable(db: Kysely<unknown>, { int64, tableOptions }: Dialect) {
  await sql`
    create table access_tokens (
      name text not null primary key, hash text not null unique, scopes text not null,
      created_at ${int64} not null, expires_at ${int64}, last_used_at ${int64}
    ) ${tableOptions}`.execute(db)
}
