import { type Parameter, postgresDialect, type Query } from '@plant-store/engine'
import { type RawBuilder, sql } from 'kysely'
import { byId, type Page, type PlantStatements, sharedStatements } from './statements.ts'
import type { PlantRow, VersionedRow } from './tables.ts'

const { now, read, changeMany } = postgresDialect

/**
 * The columns of the index by which the plants of a tag are found. An entry has at most
 * 2,704 bytes, so the index has only the start of a tag. A condition on a tag must name
 * the start, too, with the collation of the index.
 */
export const tagIndex = sql`substr(tag, 1, 200) collate "C", id`

/** The same in the order of the database's language, as a store of version 1 has it. */
export const firstTagIndex = sql`substr(tag, 1, 200), id`

const hasTag = (tag: RawBuilder<string | undefined>): RawBuilder<boolean> =>
  sql`substr(tag, 1, 200) collate "C" = substr(${tag}::text, 1, 200) and tag = ${tag}`

/** Returns the statements of plants as PostgreSQL gets them. */
export function postgresPlants(): PlantStatements {
  return {
    ...sharedStatements(postgresDialect),

    page: page(
      p => sql`
        select id, name, tag from plants
        where id >= ${p('from')}
        order by id
        limit ${p('limit')}`,
    ),
    pageOfTag: page(
      p => sql`
        select id, name, tag from plants
        where ${hasTag(p('tag'))} and id >= ${p('from')}
        order by id
        limit ${p('limit')}`,
    ),
    counted: page(
      p => sql`
        select id, name, tag,
          (select count(*) from (
            select 1 from plants limit ${p('countMax')}
          ) as counted) as total
        from plants
        where id >= ${p('from')}
        order by id
        limit ${p('limit')}`,
      sql`, total`,
    ),
    countedOfTag: page(
      p => sql`
        select id, name, tag,
          (select count(*) from (
            select 1 from plants
            where ${hasTag(p('tag'))}
            limit ${p('countMax')}
          ) as counted) as total
        from plants
        where ${hasTag(p('tag'))} and id >= ${p('from')}
        order by id
        limit ${p('limit')}`,
      sql`, total`,
    ),
    windowOfTag: read(
      p => sql`
        select max(id) as last, count(*) as count, sum(bytes) as bytes from (
          select id, octet_length(name) as bytes from plants
          where ${hasTag(p('tag'))} and id >= ${p('from')}
          order by id
          limit ${p('limit')}
        ) as sizes`,
    ),
    search: page(
      p => sql`
        select id, name, tag from plants
        where id >= ${p('from')} and id <= ${p('to')}
          and ${nameContains(p('name_contains'))}
        order by id
        limit ${p('limit')}`,
    ),
    searchOfTag: page(
      p => sql`
        select id, name, tag from plants
        where ${hasTag(p('tag'))}
          and id >= ${p('from')} and id <= ${p('to')}
          and ${nameContains(p('name_contains'))}
        order by id
        limit ${p('limit')}`,
    ),

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

/** With the collation "C", PostgreSQL's `lower` changes only A to Z, as SQLite's does. */
const nameContains = (text: RawBuilder<string>): RawBuilder<boolean> =>
  sql`strpos(lower(name collate "C"), lower(${text}::text collate "C")) > 0`

/**
 * Returns a page that ends with the row at which its texts reach `textBytesMax`. It reads
 * no text of a later row.
 *
 * @param more further columns, each after a comma
 */
function page<Values extends Page, Row extends PlantRow>(
  build: (p: Parameter<Values>) => Query<Row>,
  more = sql``,
) {
  return read<Values, Row>(
    p => sql`
      select id, name, tag${more} from (
        select *, sum(octet_length(name) + coalesce(octet_length(tag), 0))
          over (order by id rows between unbounded preceding and 1 preceding)
          as bytes_before
        from (${build(p)}) as page
      ) as page
      where coalesce(bytes_before, 0) < ${p('textBytesMax')} order by id`,
  )
}
