import type { Plant, PlantRepository } from '@plant-store/domain'
import {
  type AlsoInserts,
  columnList,
  type Entity,
  postgresDialect,
  sqliteDialect,
} from '@plant-store/engine'
import { sql } from 'kysely'
import { plants } from '../plants/entity.ts'
import { createPlantRepository } from '../plants/repository.ts'
import { plantStatements } from '../plants/statements.ts'
import { type VersionedRow, versionedNames } from '../plants/tables.ts'
import { plantNames } from './tables.ts'

const eventColumns = ['version', ...plantNames]
const outboxColumns = columnList(['webhook', ...eventColumns, 'added_at'])
const eventOfAdded = columnList(eventColumns.map(each => `added.${each}`))

/**
 * An insert or upsert of plants also adds a delivery of each added plant for each active webhook. An upsert that replaces a
 * plant adds none.
 */
const announcing: AlsoInserts<VersionedRow> = {
  // A statement of SQLite changes one table, so another goes before it. It sees whether the plant exists, as nobody else
  // writes meanwhile.
  sqlite: {
    // Without active webhooks, the statement would cost 4 % of the creates, and this query 0.5 %.
    onlyIf: sql`select 1 from webhooks where is_paused = 0`,
    statement: row => sql`
      with added (${columnList(versionedNames)}) as (values (${sql.join(versionedNames.map(name => row[name]))}))
      insert into outbox (${outboxColumns})
      select webhooks.id, ${eventOfAdded}, ${sqliteDialect.now} from webhooks, added
      where is_paused = 0 and not exists (select 1 from plants where plants.id = added.id)`,
  },
  // In one statement, which may add thousands of plants. A row that replaced another has the transaction that locked the
  // other in `xmax`. The lock keeps a webhook from being removed in between, and shows it as it is after a concurrent
  // change.
  postgres: insert => sql`
    with changed as (${insert} returning ${columnList(versionedNames)}, xmax = 0 as is_added),
    added as (select * from changed where is_added),
    webhook as materialized (
      select id from webhooks where is_paused = 0 and exists (select from added) for key share
    ),
    announced as (
      insert into outbox (${outboxColumns})
      select webhook.id, ${eventOfAdded}, ${postgresDialect.now} from added cross join webhook
    )
    select id from changed`,
}

/** The plants, and the same plants without announcing those that are added. */
export const announcedPlants: Entity<
  PlantRepository & { readonly unannounced: PlantRepository },
  Plant
> = {
  ...plants,
  compile(dialect) {
    const { insert, save } = plantStatements(dialect)
    const statements = plantStatements(dialect, announcing)
    return {
      statements: { ...statements, insertUnannounced: insert, saveUnannounced: save },
      port: runner => ({
        ...createPlantRepository(runner, statements),
        unannounced: createPlantRepository(runner, { ...statements, insert, save }),
      }),
    }
  },
}
