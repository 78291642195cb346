import {
  type Build,
  type ChangeStatement,
  type Parameter,
  sqliteDialect,
} from '@plant-store/engine'
import type { WebhookEvent } from '@plant-store/webhooks'
import { sql } from 'kysely'
import {
  byId,
  changeQueriesOn,
  type Expected,
  type Id,
  type PlantChangeStatements,
} from './statements.ts'
import type { VersionedRow } from './tables.ts'

const { now, change, changeOr, changePrecededBy } = sqliteDialect
const { saveIf, remove, removeIf } = changeQueriesOn(sqliteDialect)

/** Returns what changes plants as SQLite gets it, announced or not. */
export const sqliteChangeStatements = () => ({
  announced: statementsBy(announcing),
  silent: statementsBy((_event, _rows, build) => change(byId, build)),
})

function statementsBy(changing: typeof announcing): PlantChangeStatements {
  return {
    insert: changing('added', addedBy, insert),
    save: changeOr(changing('changed', savedBy, save), changing('added', newRow, insert)),
    saveIf: changing('changed', savedIf, saveIf),
    remove: changing('removed', removedBy, remove),
    removeIf: changing('removed', removedIf, removeIf),
  }
}

/** The placeholders of a plant. */
type Placeholders = Parameter<VersionedRow>

const insert = (p: Placeholders) => sql`
  insert into plants (name, tag, version, id) ${newRow(p)} on conflict do nothing`

/** Replaces. Only if it changes nothing, a save inserts. */
const save = (p: Placeholders) => sql`
  update plants set name = ${p('name')}, tag = ${p('tag')}, version = ${p('version')}
  where id = ${p('id')}`

/**
 * Returns a change that adds a delivery of each of these rows for each webhook that wants
 * the event. It adds them before the change, because afterwards it is unknown which rows
 * were there. SQLite has a single writer, so nothing else changes them in between.
 *
 * Without such a webhook, the deliveries would cost 4 % of a create, and the query that
 * leaves them out costs 0.5 %.
 */
function announcing<Values extends Id>(
  event: WebhookEvent,
  rows: Build<Values>,
  build: Build<Values>,
): ChangeStatement<Values> {
  const wantEvent = sql`
    webhooks where is_stopped = 0 and instr(events, ${sql.lit(event)}) > 0`
  const announce = (p: Parameter<Values>) => sql`
    with changed (name, tag, version, id) as (${rows(p)})
    insert into outbox (webhook, event, version, id, name, tag, added_at)
    select webhook, ${sql.lit(event)}, version, changed.id, name, tag, ${now}
    from (select id as webhook from ${wantEvent}), changed`
  const onlyIf = sql`select 1 from ${wantEvent}`
  return changePrecededBy({ onlyIf, build: announce }, byId, build)
}

const newRow = (p: Placeholders) =>
  sql`values (${p('name')}, ${p('tag')}, ${p('version')}, ${p('id')})`

const addedBy = (p: Placeholders) => sql`
  select * from (${newRow(p)}) where not exists (
    select 1 from plants where plants.id = column4
  )`

const savedBy = (p: Placeholders) => sql`
  select new.name, new.tag, new.version, new.id from (
    select ${p('name')} as name, ${p('tag')} as tag, ${p('version')} as version,
      ${p('id')} as id
  ) as new
  join plants on plants.id = new.id`

const savedIf = (p: Parameter<VersionedRow & Expected>) => sql`
  ${savedBy(p)} and plants.version = ${p('expected')}`

const removedBy = (p: Parameter<Id>) =>
  sql`select name, tag, version, id from plants where id = ${p('id')}`

const removedIf = (p: Parameter<Id & Expected>) => sql`
  ${removedBy(p)} and version = ${p('expected')}`
