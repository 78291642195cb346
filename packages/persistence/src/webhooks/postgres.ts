import { postgresDialect } from '@plant-store/engine'
import { sql } from 'kysely'
import { statementsOfBoth, type WebhookStatements } from './statements.ts'

/** Returns the statements of webhooks as PostgreSQL gets them. */
export function postgresWebhooks(): WebhookStatements {
  return {
    ...statementsOfBoth(postgresDialect),
    awaitAdding: postgresDialect.change(
      'barrier',
      () => sql`lock table webhooks in exclusive mode`,
    ),
  }
}
