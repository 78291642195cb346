export type { Post, PostAnswer } from './attempt.ts'
export { Courier, type CourierReport } from './courier.ts'
export { courierLimits } from './courier-limits.ts'
export type {
  Claim,
  ClaimLimits,
  ClaimOutcome,
  Delivery,
  FailedAttempt,
  Outbox,
  WebhookFigures,
  WebhookRepository,
} from './ports.ts'
export { isPublicAddress } from './public-address.ts'
export { parseRetryAfter } from './retry-after.ts'
export { mintSecret, signedHeaders, type WebhookSecret } from './signature.ts'
export {
  mintWebhookId,
  parseWebhookEvents,
  parseWebhookUrl,
  type Webhook,
  type WebhookEvent,
  type WebhookId,
  type WebhookState,
  webhookEvents,
} from './webhook.ts'
