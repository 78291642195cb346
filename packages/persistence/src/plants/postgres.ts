import { type Parameter, postgresDialect, type Query } from '@plant-store/engine'
import type { WebhookEvent } from '@plant-store/webhooks'
import { type RawBuilder, sql } from 'kysely'
import { byId, changeQueriesOn, type PlantChangeStatements } from './statements.ts'
import type { VersionedRow } from './tables.ts'

const { now, change, changeMany } = postgresDialect
const { saveIf, remove, removeIf } = changeQueriesOn(postgresDialect)

/** Returns what changes plants as PostgreSQL gets it, announced or not. */
export const postgresChangeStatements = () => ({
  announced: statementsBy(announcing),
  silent: statementsBy(
    (change, event) => sql`${change} returning id, ${rowsOf(event)} as rows`,
  ),
})

function statementsBy(changing: typeof announcing): PlantChangeStatements {
  return {
    insert: changeMany(byId, p => changing(insert(p), sql.lit('added'))),
    save: changeMany(byId, p => changing(save(p), savedEvent)),
    saveIf: change(byId, p => changing(saveIf(p), sql.lit('changed'))),
    remove: change(byId, p => changing(remove(p), sql.lit('removed'))),
    removeIf: change(byId, p => changing(removeIf(p), sql.lit('removed'))),
  }
}

const newRows = (p: Parameter<VersionedRow>) => sql`unnest(
    ${p('id')}::bigint[], ${p('name')}::text[], ${p('tag')}::text[],
    ${p('version')}::bigint[]
  ) as new (id, name, tag, version)`

const insert = (p: Parameter<VersionedRow>) => sql`
  insert into plants (id, name, tag, version, added)
  select id, name, tag, version, version as added from ${newRows(p)}
  on conflict do nothing`

const save = (p: Parameter<VersionedRow>) => sql`
  insert into plants (id, name, tag, version, added)
  select id, name, tag, version, version as added from ${newRows(p)}
  on conflict (id) do update
  set name = excluded.name, tag = excluded.tag, version = excluded.version`

/** A plant that replaced another has a new version, but `added` is that of its insert. */
const savedEvent = sql<WebhookEvent>`case when added = version then 'added' else 'changed' end`

/** A save counts a plant that it replaces twice. */
const rowsOf = (event: RawBuilder<unknown>) =>
  sql`case ${event} when 'changed' then 2 else 1 end`

/**
 * Returns a change that also adds a delivery of each changed plant for each active
 * webhook that wants its event. The lock keeps a webhook from being removed until the
 * commit. It waits for a concurrent removal, but for no other change of the webhook.
 */
const announcing = (change: Query<unknown>, event: RawBuilder<WebhookEvent>) => sql`
  with changed as (
    ${change} returning id, name, tag, version, ${event} as event
  ),
  webhook as materialized (
    select id, events from webhooks where is_stopped = 0 and exists (select from changed)
    for key share
  ),
  announced as (
    insert into outbox (webhook, event, version, id, name, tag, added_at)
    select webhook.id, event, version, changed.id, name, tag, ${now}
    from changed join webhook on strpos(events, event) > 0
  )
  select id, ${rowsOf(sql`event`)} as rows from changed`
