import type { WebhookSecret } from './signature.ts'
import type { NewWebhook, Webhook, WebhookId } from './webhook.ts'

/**
 * Where webhooks are kept. A change that has resolved is durable and holds for every process on the store. Where there
 * is no such webhook, changes resolve to false.
 */
export interface WebhookRepository {
  /** Every plant that is added from now on is announced to it. */
  add(webhook: NewWebhook, secret: WebhookSecret): Promise<void>
  /** In the order as added. */
  list(): Promise<readonly Webhook[]>
  /** Forgets what waits for it, too. */
  remove(id: WebhookId): Promise<boolean>
  pause(id: WebhookId): Promise<boolean>
  /** Ends a pause, and forgets how often attempts failed. */
  resume(id: WebhookId): Promise<boolean>
  /** The secret before signs as well for this long; the one before that no more. */
  rotate(id: WebhookId, secret: WebhookSecret, overlapMs: number): Promise<boolean>
  /** Makes due at once, with no attempts, what was given up or waits for its next attempt. */
  retry(id: WebhookId): Promise<boolean>
}
