import { sql } from 'kysely'
import type { Dialect } from './migrations.ts'

/** Milliseconds since 1970 by the database's clock, which all processes on a store share. */
export const databaseTime = {
  integer: sql`cast(unixepoch('subsec') * 1000 as integer)`,
  bigint: sql`cast(extract(epoch from statement_timestamp()) * 1000 as bigint)`,
}

/**
 * Adds one delivery for each webhook with room, in the transaction that adds a plant, whatever statement adds it. An
 * upsert that replaces a plant adds none. A row in `silence`, which exists only within a transaction, suppresses them.
 *
 * On PostgreSQL one statement adds thousands of plants. The lock keeps a webhook from being removed in between, and
 * shows it as it is after a concurrent change.
 *
 * Every upgrade replaces the triggers with these, after its last migration.
 */
export const announceAddedPlants = {
  integer: [
    sql`drop trigger if exists announce_added_plant`,
    sql`
      create trigger announce_added_plant after insert on plants
      when exists (select 1 from webhooks) and not exists (select 1 from silence)
      begin
        insert into outbox (webhook, version, id, name, tag, added_at)
          select webhooks.id, new.version, new.id, new.name, new.tag, ${databaseTime.integer}
          from webhooks where is_full = 0;
        update webhooks set missed = missed + 1 where is_full = 1;
      end`,
  ],
  bigint: [
    sql`
      create or replace function announce_added_plants() returns trigger language plpgsql set search_path from current as $$
      begin
        if exists (select from webhooks) and not exists (select from silence) then
          with webhook as materialized (select id, is_full from webhooks for key share),
          missed_by as (
            update webhooks set missed = missed + (select count(*) from added)
            from webhook where webhooks.id = webhook.id and webhook.is_full = 1
          )
          insert into outbox (webhook, version, id, name, tag, added_at)
            select webhook.id, added.version, added.id, added.name, added.tag, ${databaseTime.bigint}
            from added cross join webhook where webhook.is_full = 0;
        end if;
        return null;
      end $$`,
    sql`drop trigger if exists announce_added_plants on plants`,
    sql`
      create trigger announce_added_plants after insert on plants referencing new table as added
      for each statement execute function announce_added_plants()`,
  ],
} satisfies Record<Dialect['int64'], unknown>
