import { type Parameter, postgresDialect, type Query } from '@plant-store/engine'
import { type RawBuilder, sql } from 'kysely'
import { byId, type PlantStatements, sharedStatements } from './statements.ts'
import type { VersionedRow } from './tables.ts'

const { now, changeMany } = postgresDialect

/** Returns the statements of plants as PostgreSQL gets them. */
export function postgresPlants(): PlantStatements {
  return {
    ...sharedStatements(postgresDialect),
    insert: changeMany(byId, p => announcing(insert(p))),
    insertUnannounced: changeMany(byId, p => sql`${insert(p)} returning id`),
    save: changeMany(byId, p => announcing(save(p))),
    saveUnannounced: changeMany(byId, p => sql`${save(p)} returning id`),
  }
}

const newRows = (p: Parameter<VersionedRow>): RawBuilder<unknown> => sql`unnest(
    ${p('id')}::bigint[], ${p('name')}::text[], ${p('tag')}::text[],
    ${p('version')}::bigint[]
  ) as new (id, name, tag, version)`

const insert = (p: Parameter<VersionedRow>): Query<unknown> => sql`
  insert into plants (id, name, tag, version, added)
  select id, name, tag, version, version as added from ${newRows(p)}
  on conflict do nothing`

const save = (p: Parameter<VersionedRow>): Query<unknown> => sql`
  insert into plants (id, name, tag, version, added)
  select id, name, tag, version, version as added from ${newRows(p)}
  on conflict (id) do update
  set name = excluded.name, tag = excluded.tag, version = excluded.version`

/**
 * Returns a change that also adds a delivery of each added plant for each active webhook.
 * A plant that replaced another has a new version, but its `added` is the version of its
 * insert. The lock keeps a webhook from being removed until the commit. It waits for a
 * concurrent removal, but for no other change of the webhook.
 */
const announcing = (change: Query<unknown>): Query<unknown> => sql`
  with changed as (
    ${change} returning id, name, tag, version, added = version as is_added
  ),
  added as (select * from changed where is_added),
  webhook as materialized (
    select id from webhooks where is_stopped = 0 and exists (select from added)
    for key share
  ),
  announced as (
    insert into outbox (webhook, version, id, name, tag, added_at)
    select webhook.id, added.version, added.id, added.name, added.tag, ${now}
    from added cross join webhook
  )
  select id from changed`
