import { createHmac, randomBytes } from 'node:crypto'

/** `whsec_` and the key in base64, as Standard Webhooks writes it. */
export type WebhookSecret = string & { readonly __brand: 'WebhookSecret' }

const prefix = 'whsec_'

export function mintSecret(): WebhookSecret {
  return `${prefix}${randomBytes(32).toString('base64')}` as WebhookSecret
}

/**
 * Returns the header fields of a delivery by Standard Webhooks: a signature by each secret.
 *
 * @param id the same at every attempt
 * @param body as it is sent, byte for byte
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
