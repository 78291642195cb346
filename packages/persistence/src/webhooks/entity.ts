import type { Dialect, Entity } from '@plant-store/engine'
import type { Outbox, WebhookRepository } from '@plant-store/webhooks'
import { type Kysely, sql } from 'kysely'
import { orderByBytes } from '../byte-order.ts'
import { notNull, zeroByDefault } from '../columns.ts'
import { createOutbox, createWebhookRepository } from './repository.ts'
import { webhookStatements } from './statements.ts'

export const webhooks: Entity<WebhookRepository & { readonly outbox: Outbox }> = {
  tables: ['webhooks', 'outbox'],
  migrations: { 1: createTables, 2: orderIdsByBytes, 3: addEvents },
  rows: null,
  compile(dialect) {
    const statements = webhookStatements(dialect)
    return {
      statements: { ...statements },
      port: runner => ({
        ...createWebhookRepository(runner, statements),
        outbox: createOutbox(runner, statements),
      }),
    }
  },
}

async function orderIdsByBytes(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await orderByBytes('webhooks', ['id'])(db, dialect)
  await orderByBytes('outbox', ['webhook'])(db, dialect)
}

/**
 * A webhook of an earlier release hears only of new plants, as all its deliveries are.
 */
async function addEvents(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('webhooks')
    .addColumn('events', 'text', column => column.notNull().defaultTo('added'))
    .execute()
  await db.schema
    .alterTable('outbox')
    .addColumn('event', 'text', column => column.notNull().defaultTo('added'))
    .execute()
  // Has only deliveries that failed, for which later ones of the same plant wait.
  await db.schema
    .createIndex('outbox_retries')
    .on('outbox')
    .columns(['webhook', 'id', 'position'])
    .where(sql.ref('next_at'), '>', 0)
    .execute()
}

async function createTables(
  db: Kysely<unknown>,
  { int64, tableOptions }: Dialect,
): Promise<void> {
  await db.schema
    .createTable('webhooks')
    .addColumn('id', 'text', column => column.primaryKey().notNull())
    .addColumn('url', 'text', notNull)
    .addColumn('allows_private', int64, notNull)
    .addColumn('created_at', int64, notNull)
    .addColumn('secret', 'text', notNull)
    .addColumn('is_stopped', int64, zeroByDefault)
    .addColumn('failures', int64, zeroByDefault)
    .addColumn('failing_since', int64)
    .addColumn('next_claim_at', int64, zeroByDefault)
    .addColumn('lease', 'text', column => column.notNull().defaultTo(''))
    .addColumn('leased_at', int64, zeroByDefault)
    .addColumn('leased_until', int64, zeroByDefault)
    .modifyEnd(tableOptions)
    .execute()
  await db.schema
    .createTable('outbox')
    .addColumn('position', int64, column =>
      int64 === 'bigint'
        ? column.primaryKey().generatedAlwaysAsIdentity()
        : column.primaryKey(),
    )
    .addColumn('webhook', 'text', column =>
      column.notNull().references('webhooks.id').onDelete('cascade'),
    )
    .addColumn('version', int64, notNull)
    .addColumn('id', int64, notNull)
    .addColumn('name', 'text', notNull)
    .addColumn('tag', 'text')
    .addColumn('added_at', int64, notNull)
    .addColumn('attempts', int64, zeroByDefault)
    .addColumn('next_at', int64, column => column.defaultTo(0))
    .addColumn('reason', 'text')
    .modifyEnd(tableOptions)
    .execute()
  // The index has due retries first, then new deliveries in order. It has `added_at`, so
  // that figures need no row.
  await db.schema
    .createIndex('outbox_due')
    .on('outbox')
    .columns(['webhook', 'next_at desc', 'position', 'added_at'])
    .execute()
}
