import { sqliteDialect } from '@plant-store/engine'
import { sql } from 'kysely'
import { sharedStatements, type WebhookStatements } from './statements.ts'

/** Returns the statements of webhooks as SQLite gets them. */
export function sqliteWebhooks(): WebhookStatements {
  return {
    ...sharedStatements(sqliteDialect),
    // SQLite has a single writer, so there is nothing to wait for: this changes no row.
    awaitChanges: sqliteDialect.change(
      'barrier',
      () => sql`delete from webhooks where false`,
    ),
  }
}
