import { postgresDialect } from '@plant-store/engine'
import { sql } from 'kysely'
import { sharedStatements, type WebhookStatements } from './statements.ts'

/** Returns the statements of webhooks as PostgreSQL gets them. */
export function postgresWebhooks(): WebhookStatements {
  return {
    ...sharedStatements(postgresDialect),
    awaitChanges: postgresDialect.change(
      'barrier',
      () => sql`lock table webhooks in exclusive mode`,
    ),
  }
}
