import { createHmac, randomBytes } from 'node:crypto'

/** `whsec_` and the key in base64, as in Standard Webhooks. */
export type WebhookSecret = string & { readonly __brand: 'WebhookSecret' }

const prefix = 'whsec_'

export function mintSecret(): WebhookSecret {
  return `${prefix}${randomBytes(32).toString('base64')}` as WebhookSecret
}

/**
 * Returns the header fields of a signed delivery (Standard Webhooks).
 *
 * @param message its `id`, the same in every attempt, and its `body` exactly as it is
 *   sent
 */
export function signedHeaders(
  message: { id: string; sentAtMs: number; body: string },
  secret: WebhookSecret,
): Record<string, string> {
  const { id, sentAtMs, body } = message
  const timestamp = `${Math.floor(sentAtMs / 1000)}`
  const key = Buffer.from(secret.slice(prefix.length), 'base64')
  const signature = createHmac('sha256', key)
    .update(`${id}.${timestamp}.${body}`)
    .digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  }
}
