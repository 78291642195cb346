import { type Parameter, type Query, sqliteDialect } from '@plant-store/engine'
import { type RawBuilder, sql } from 'kysely'
import { byId, type PlantStatements, sharedStatements } from './statements.ts'
import type { VersionedRow } from './tables.ts'

const { now, change, changePrecededBy } = sqliteDialect

/** Returns the statements of plants as SQLite gets them. */
export function sqlitePlants(): PlantStatements {
  return {
    ...sharedStatements(sqliteDialect),
    insert: changePrecededBy({ onlyIf: anyWebhook, build: announce }, byId, insert),
    insertUnannounced: change(byId, insert),
    save: changePrecededBy({ onlyIf: anyWebhook, build: announce }, byId, save),
    saveUnannounced: change(byId, save),
  }
}

const newRow = (p: Parameter<VersionedRow>): RawBuilder<unknown> =>
  sql`${p('id')}, ${p('name')}, ${p('tag')}, ${p('version')}`

const insert = (p: Parameter<VersionedRow>): Query<unknown> => sql`
  insert into plants (id, name, tag, version)
  values (${newRow(p)})
  on conflict do nothing`

const save = (p: Parameter<VersionedRow>): Query<unknown> => sql`
  insert into plants (id, name, tag, version)
  values (${newRow(p)})
  on conflict (id) do update
  set name = excluded.name, tag = excluded.tag, version = excluded.version`

/**
 * Adds a delivery of a plant for each active webhook, unless the plant exists. It runs
 * before the insert, because afterwards every plant exists. SQLite has a single writer,
 * so nothing else adds the plant in between.
 */
const announce = (p: Parameter<VersionedRow>): Query<unknown> => sql`
  with added (id, name, tag, version) as (
    values (${newRow(p)})
  )
  insert into outbox (webhook, version, id, name, tag, added_at)
  select webhooks.id, added.version, added.id, added.name, added.tag, ${now}
  from webhooks, added
  where is_stopped = 0 and not exists (select 1 from plants where plants.id = added.id)`

/**
 * Returns a row if `announce` has anything to do. Without active webhooks, `announce`
 * would cost 4 % of the creates, and this query costs 0.5 %.
 */
const anyWebhook = sql`select 1 from webhooks where is_stopped = 0`
