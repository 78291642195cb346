import type { WebhookSecret } from './signature.ts'
import type { Webhook, WebhookId } from './webhook.ts'

/**
 * The port where webhooks are stored. A resolved change is durable and visible to every process on the store. A change
 * of an unknown webhook resolves to false.
 */
export interface WebhookRepository {
  /** Adds a webhook. Every plant added from now on is announced to it. */
  add(
    webhook: Pick<Webhook, 'id' | 'url' | 'allowsPrivate' | 'createdAt'>,
    secret: WebhookSecret,
  ): Promise<void>
  /** In order of creation. */
  list(): Promise<readonly Webhook[]>
  /** Removes its pending deliveries too. */
  remove(id: WebhookId): Promise<boolean>
  rotate(id: WebhookId, secret: WebhookSecret): Promise<boolean>
  /** Makes every delivery that waits or was given up due at once, with no failed attempts. Ends a pause. */
  retry(id: WebhookId): Promise<boolean>
}
