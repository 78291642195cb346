import { type Around, columnList, type Dialect } from '@plant-store/engine'
import { sql } from 'kysely'
import { plantNames, type VersionedRow, versionedNames } from '../plants/tables.ts'

const eventColumns = ['version', ...plantNames]
const outboxColumns = columnList(['webhook', ...eventColumns, 'added_at'])
const eventOfAdded = columnList(eventColumns.map(each => `added.${each}`))

/**
 * Returns what makes a change of plants also add a delivery of each added plant for each active webhook, and count it as
 * missed by the others. An upsert that replaces a plant adds none.
 */
export function announcing({ name, now }: Dialect): Around<VersionedRow> {
  if (name === 'sqlite')
    // A statement of SQLite changes one table, so two others go before it. They see whether the plant exists, as
    // nobody else writes meanwhile.
    return (last, row) => {
      const added = sql`
        with plant (${columnList(versionedNames)}) as (values (${sql.join(versionedNames.map(column => row[column]))})),
        added as (select * from plant where not exists (select 1 from plants where plants.id = plant.id))`
      return {
        last,
        // Without webhooks, both statements would cost 4 % of the creates, and this query 0.5 %.
        ifAny: sql`select 1 from webhooks`,
        before: [
          sql`
            insert into outbox (${outboxColumns}) ${added}
            select webhooks.id, ${eventOfAdded}, ${now} from webhooks, added where is_paused = 0`,
          sql`${added} update webhooks set missed = missed + 1 where is_paused = 1 and exists (select 1 from added)`,
        ],
      }
    }
  // In one statement, which may add thousands of plants. A row that replaced another has the transaction that locked the
  // other in `xmax`. The lock keeps a webhook from being removed in between, and shows it as it is after a concurrent
  // change.
  return change => sql`
    with changed as (${change} returning ${columnList(versionedNames)}, xmax = 0 as is_added),
    added as (select * from changed where is_added),
    webhook as materialized (
      select id, is_paused from webhooks where exists (select from added) for key share
    ),
    missed_by as (
      update webhooks set missed = missed + (select count(*) from added)
      from webhook where webhooks.id = webhook.id and webhook.is_paused = 1
    ),
    announced as (
      insert into outbox (${outboxColumns})
      select webhook.id, ${eventOfAdded}, ${now} from added cross join webhook where webhook.is_paused = 0
    )
    select id from changed`
}
