import { type Parameter, type Query, sqliteDialect } from '@plant-store/engine'
import { type RawBuilder, sql } from 'kysely'
import { byId, type Page, type PlantStatements, sharedStatements } from './statements.ts'
import type { PlantRow, VersionedRow } from './tables.ts'

const { now, read, change, changePrecededBy } = sqliteDialect

/** The columns of the index by which the plants of a tag are found. */
export const tagIndex = sql`tag, id`

/** Returns the statements of plants as SQLite gets them. */
export function sqlitePlants(): PlantStatements {
  return {
    ...sharedStatements(sqliteDialect),

    page: page(
      (p, columns) => sql`
        select ${columns} from plants
        where id >= ${p('from')}
        order by id
        limit ${p('limit')}`,
    ),
    pageOfTag: page(
      (p, columns) => sql`
        select ${columns} from plants
        where tag = ${p('tag')} and id >= ${p('from')}
        order by id
        limit ${p('limit')}`,
    ),
    counted: page(
      (p, columns) => sql`
        select ${columns},
          (select count(*) from (select 1 from plants limit ${p('countMax')})) as total
        from plants
        where id >= ${p('from')}
        order by id
        limit ${p('limit')}`,
    ),
    countedOfTag: page(
      (p, columns) => sql`
        select ${columns},
          (select count(*) from (
            select 1 from plants
            where tag = ${p('tag')}
            limit ${p('countMax')}
          )) as total
        from plants
        where tag = ${p('tag')} and id >= ${p('from')}
        order by id
        limit ${p('limit')}`,
    ),
    windowOfTag: read(
      p => sql`
        select max(id) as last, count(*) as count, sum(bytes) as bytes from (
          select id, octet_length(name) as bytes from plants
          where tag = ${p('tag')} and id >= ${p('from')}
          order by id
          limit ${p('limit')}
        )`,
    ),
    search: page(
      (p, columns) => sql`
        select ${columns} from plants
        where id >= ${p('from')} and id <= ${p('to')}
          and ${nameContains(p('name_contains'))}
        order by id
        limit ${p('limit')}`,
    ),
    searchOfTag: page(
      (p, columns) => sql`
        select ${columns} from plants
        where tag = ${p('tag')}
          and id >= ${p('from')} and id <= ${p('to')}
          and ${nameContains(p('name_contains'))}
        order by id
        limit ${p('limit')}`,
    ),

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

/** SQLite's `lower` changes only A to Z. */
const nameContains = (text: RawBuilder<string>): RawBuilder<boolean> =>
  sql`instr(lower(name), lower(${text})) > 0`

/** Returns a page in its two forms, with either list of columns. */
function page<Values extends Page, Row extends PlantRow>(
  build: (p: Parameter<Values>, columns: RawBuilder<unknown>) => Query<Row>,
) {
  return sqliteDialect.page<Values, Row>(
    ['name', 'tag'],
    p => build(p, sql`id, name, tag`),
    p => build(p, guardedColumns(p)),
  )
}

const guardedColumns = (p: Parameter<Page>) => sql`
  id,
  case when octet_length(name) > ${p('textBytesMax')} then 0 else name end as name,
  case when octet_length(tag) > ${p('textBytesMax')} then 0 else tag end as tag`
