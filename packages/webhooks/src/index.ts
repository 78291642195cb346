export {
  type CourierReport,
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
  Outbox,
  WebhookFigures,
  WebhookRepository,
} from './ports.ts'
export { mintSecret, signedHeaders, type WebhookSecret } from './signature.ts'
export {
  isPublicAddress,
  mintWebhookId,
  parseWebhookUrl,
  type Webhook,
  type WebhookId,
  type WebhookState,
} from './webhook.ts'
