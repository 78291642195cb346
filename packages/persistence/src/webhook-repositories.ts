import type { Plant } from '@plant-store/domain'
import {
  type Claim,
  type Delivery,
  mintLease,
  type Outbox,
  type Webhook,
  type WebhookId,
  type WebhookRepository,
  type WebhookSecret,
} from '@plant-store/webhooks'
import type { Change } from './group-commit.ts'
import type { StatementRunner } from './repositories.ts'
import { type PlantRow, toPlant, toVersion } from './tables.ts'

interface WebhookRow {
  id: WebhookId
  url: string
  allows_private: bigint
  created_at: bigint
  secret: WebhookSecret
  former_secret: WebhookSecret | null
  is_paused: bigint
  is_full: bigint
  failures: bigint
  failing_since: bigint | null
  lease: string
}

interface DeliveryRow extends PlantRow {
  position: bigint
  version: bigint
  added_at: bigint
  attempts: bigint
  next_at: bigint | null
  reason: string | null
}

interface FiguresRow {
  webhook: WebhookId
  waiting: bigint
  given_up: bigint
  missed: bigint
  oldest_ms: bigint | null
}
