import type { WebhookEvent, WebhookId, WebhookSecret } from '@plant-store/webhooks'
import type { Generated, Selectable } from 'kysely'
import type { VersionedRow } from '../plants/tables.ts'

/**
 * The columns that a new webhook gets. Flags are 0 or 1. Times are milliseconds since
 * 1970 by the database's clock.
 */
export interface NewWebhookRow {
  id: WebhookId
  url: string
  allows_private: bigint
  created_at: bigint
  secret: WebhookSecret
  /** Separated by single spaces. */
  events: string
}

export interface WebhookRow extends NewWebhookRow {
  is_stopped: Generated<bigint>
  failures: Generated<bigint>
  failing_since: bigint | null
  next_claim_at: Generated<bigint>
  lease: Generated<string>
  leased_at: Generated<bigint>
  leased_until: Generated<bigint>
}

/** The columns that are read of a webhook. Its leases are read separately. */
export type KnownWebhookRow = NewWebhookRow &
  Pick<Selectable<WebhookRow>, 'is_stopped' | 'failures' | 'failing_since'>

export interface DeliveryRow extends VersionedRow {
  position: bigint
  event: WebhookEvent
  /** When the delivery was added, which is when the plant was changed. */
  added_at: bigint
  attempts: bigint
  /** 0 for a new delivery, `null` for one that was given up. */
  next_at: bigint | null
  reason: string | null
}
