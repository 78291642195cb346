import type { Dialect, Entity } from '@plant-store/engine'
import type { Outbox, WebhookRepository } from '@plant-store/webhooks'
import { type Kysely, sql } from 'kysely'
import { orderByBytes } from '../byte-order.ts'
import { createOutbox, createWebhookRepository } from './repository.ts'
import { webhookStatements } from './statements.ts'

const orderIdsByBytes = orderByBytes({ webhooks: ['id'], outbox: ['webhook'] })

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

/**
 * A webhook of an earlier release hears only of new plants, as all its deliveries are.
 */
async function addEvents(db: Kysely<unknown>) {
  await sql`
    alter table webhooks add column events text default 'added' not null`.execute(db)
  await sql`
    alter table outbox add column event text default 'added' not null`.execute(db)
  // Has only deliveries that failed, for which later ones of the same plant wait.
  await sql`
    create index outbox_retries on outbox (webhook, id, position)
    where next_at > 0`.execute(db)
}

async function createTables(db: Kysely<unknown>, { name, int64, tableOptions }: Dialect) {
  const countedUp = name === 'sqlite' ? sql`` : sql`generated always as identity`
  await sql`
    create table webhooks (
      id text not null primary key, url text not null, allows_private ${int64} not null,
      created_at ${int64} not null, secret text not null,
      is_stopped ${int64} default 0 not null, failures ${int64} default 0 not null,
      failing_since ${int64}, next_claim_at ${int64} default 0 not null,
      lease text default '' not null, leased_at ${int64} default 0 not null,
      leased_until ${int64} default 0 not null
    ) ${tableOptions}`.execute(db)
  await sql`
    create table outbox (
      position ${int64} ${countedUp} primary key,
      webhook text not null references webhooks (id) on delete cascade,
      version ${int64} not null, id ${int64} not null, name text not null, tag text,
      added_at ${int64} not null, attempts ${int64} default 0 not null,
      next_at ${int64} default 0, reason text
    ) ${tableOptions}`.execute(db)
  // The index has due retries first, then new deliveries in order. It has `added_at`, so
  // that figures need no row.
  await sql`
    create index outbox_due on outbox (webhook, next_at desc, position, added_at)
  `.execute(db)
}
