import { createHmac, randomBytes } from 'node:crypto'

/** `whsec_` and the key in base64, as in Standard Webhooks. */
export type WebhookSecret = string & { readonly __brand: 'WebhookSecret' }

const prefix = 'whsec_'

export function mintSecret(): WebhookSecret {
  return `${prefix}${randomBytes(32).toString('base64')}` as WebhookSecret
}

/**
 * Returns the header fields of a delivery (Standard Webhooks), with a signature for each secret.
 *
 * @param id the same in every attempt
 * @param body exactly the bytes sent
 */
export function signedHeaders(
  id: string,
  sentAtMs: number,
  body: string,
  secrets: readonly WebhookSecret[],
): Record<string, string> {
  const timestamp = `${Math.floor(sentAtMs / 1000)}`
  const signatures = secrets.map(secret => {
    const key = Buffer.from(secret.slice(prefix.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}
