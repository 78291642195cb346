import type { Dialect } from '@plant-store/engine'
import { sql } from 'kysely'

/**
 * Waits until the changes of plants that others are making are stored, and keeps others
 * from making any until the transaction ends. SQLite has a single writer, so there is
 * nothing to wait for, and this changes no row.
 */
export function awaitChangesOn({ name, change }: Dialect) {
  return change<object>('barrier', () =>
    name === 'sqlite'
      ? sql`delete from webhooks where false`
      : sql`lock table webhooks in exclusive mode`,
  )
}
