import type { WebhookEvent, WebhookId, WebhookSecret } from '@plant-store/webhooks'
import type { Generated, Selectable } from 'kysely'
import type { PlantRow } from '../plants/tables.ts'

/** Flags are 0 or 1. Times are milliseconds since 1970 by the database's clock. */
export interface WebhookRow {
  id: WebhookId
  url: string
  allows_private: bigint
  created_at: bigint
  secret: WebhookSecret
  /** Separated by single spaces. */
  events: Generated<string>
  is_stopped: Generated<bigint>
  failures: Generated<bigint>
  failing_since: bigint | null
  next_claim_at: Generated<bigint>
  lease: Generated<string>
  leased_at: Generated<bigint>
  leased_until: Generated<bigint>
}

/** The columns that are read of a webhook. Its leases are read separately. */
export interface KnownWebhookRow
  extends Omit<
    Selectable<WebhookRow>,
    'next_claim_at' | 'lease' | 'leased_at' | 'leased_until'
  > {}

export interface DeliveryRow extends PlantRow {
  position: bigint
  event: WebhookEvent
  version: bigint
  /** When the delivery was added, which is when the plant was changed. */
  added_at: bigint
  attempts: bigint
  /** 0 for a new delivery, `null` for one that was given up. */
  next_at: bigint | null
  reason: string | null
}
