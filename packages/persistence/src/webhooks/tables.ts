import type { WebhookId, WebhookSecret } from '@plant-store/webhooks'
import type { Generated } from 'kysely'
import { type PlantRow, plantColumns } from '../plants/tables.ts'

export const plantNames = Object.keys(plantColumns) as readonly (keyof PlantRow)[]

export interface WebhookRow {
  id: WebhookId
  url: string
  /** Flags are 0 or 1. Times are milliseconds since 1970 by the database's clock. */
  allows_private: bigint
  created_at: bigint
  secret: WebhookSecret
  /** Whether the webhook is stopped. */
  is_paused: Generated<bigint>
  missed: Generated<bigint>
  failures: Generated<bigint>
  failing_since: bigint | null
  next_claim_at: Generated<bigint>
  lease: Generated<string>
  leased_at: Generated<bigint>
  leased_until: Generated<bigint>
}

export interface DeliveryRow extends PlantRow {
  position: bigint
  version: bigint
  added_at: bigint
  attempts: bigint
  /** 0 for a new delivery, `null` for one that was given up. */
  next_at: bigint | null
  reason: string | null
}
