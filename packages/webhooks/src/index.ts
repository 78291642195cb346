export { isPublicAddress } from './address.ts'
export {
  type CourierLimits,
  type CourierOptions,
  type CourierReport,
  type CourierSignals,
  courierLimits,
  createCourier,
  type Post,
} from './courier.ts'
export type {
  Claim,
  ClaimLimits,
  ClaimOutcome,
  Delivery,
  FailedAttempt,
  LoggedDelivery,
  Outbox,
  WebhookFigures,
} from './outbox.ts'
export { mintSecret, signedHeaders, type WebhookSecret } from './signature.ts'
export { mintWebhookId, parseWebhookUrl, type Webhook, type WebhookId } from './webhook.ts'
export type { WebhookRepository } from './webhook-repository.ts'
