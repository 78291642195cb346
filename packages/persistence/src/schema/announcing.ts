import { type Kysely, sql } from 'kysely'
import { plantColumns, type Tables } from './tables.ts'

/** Milliseconds since 1970 by the database's clock, which all processes on a store share. */
export const databaseTime = {
  sqlite: sql<bigint>`cast(unixepoch('subsec') * 1000 as integer)`,
  postgres: sql<bigint>`cast(extract(epoch from statement_timestamp()) * 1000 as bigint)`,
}

const columns = sql.raw(['webhook', 'version', ...plantColumns, 'added_at'].join(', '))
const valuesOf = (added: string) =>
  sql.raw(['version', ...plantColumns].map(each => `${added}.${each}`).join(', '))

/**
 * Adds one delivery for each webhook with room, in the transaction that adds a plant, whatever statement adds it. An
 * upsert that replaces a plant adds none. A row in `silence`, which exists only within a transaction, suppresses them.
 *
 * Created with the first webhook, and kept: without webhooks, the trigger would cost 2 % of the creates.
 */
export const announceOnSqlite = sql`
  create trigger if not exists announce_added_plant after insert on plants
  when exists (select 1 from webhooks) and not exists (select 1 from silence)
  begin
    insert into outbox (${columns})
      select webhooks.id, ${valuesOf('new')}, ${databaseTime.sqlite}
      from webhooks where is_full = 0;
    update webhooks set missed = missed + 1 where is_full = 1;
  end`

/**
 * The same for each statement, which may add thousands of plants. The lock keeps a webhook from being removed in
 * between, and shows it as it is after a concurrent change.
 *
 * Created with the store: a trigger that is created later waits for all transactions, and all later ones for it.
 */
const announceOnPostgres = [
  sql`
    create or replace function announce_added_plants() returns trigger language plpgsql set search_path from current as $$
    begin
      if exists (select from webhooks) and not exists (select from silence) then
        with webhook as materialized (select id, is_full from webhooks for key share),
        missed_by as (
          update webhooks set missed = missed + (select count(*) from added)
          from webhook where webhooks.id = webhook.id and webhook.is_full = 1
        )
        insert into outbox (${columns})
          select webhook.id, ${valuesOf('added')}, ${databaseTime.postgres}
          from added cross join webhook where webhook.is_full = 0;
      end if;
      return null;
    end $$`,
  sql`drop trigger if exists announce_added_plants on plants`,
  sql`
    create trigger announce_added_plants after insert on plants referencing new table as added
    for each statement execute function announce_added_plants()`,
]

export async function replaceTriggerOnSqlite(db: Kysely<Tables>): Promise<void> {
  await sql`drop trigger if exists announce_added_plant`.execute(db)
  const { rows } = await sql`select 1 from webhooks limit 1`.execute(db)
  if (rows.length > 0) await announceOnSqlite.execute(db)
}

export async function replaceTriggerOnPostgres(db: Kysely<Tables>): Promise<void> {
  for (const statement of announceOnPostgres) await statement.execute(db)
}
