import { randomBytes } from 'node:crypto'

/** Names a webhook, to operators, in logs and in metrics. */
export type WebhookId = string & { readonly __brand: 'WebhookId' }

/** A URL that wants to hear of every new plant. */
export interface Webhook {
  readonly id: WebhookId
  readonly url: string
  /** Whether `http:`, and addresses that only a private network reaches, may be used. */
  readonly allowsPrivate: boolean
  readonly createdAt: Date
  /** Plants are announced to a paused one too, and wait. */
  readonly state: 'active' | 'paused'
  /** How many attempts have failed since the last one that was received. */
  readonly failures: number
  /** When the first of those failed. */
  readonly failingSince?: Date
}

/** Everything of a webhook that is chosen when it is added. */
export type NewWebhook = Pick<Webhook, 'id' | 'url' | 'allowsPrivate' | 'createdAt'>

export function mintWebhookId(): WebhookId {
  return `wh_${randomBytes(6).toString('hex')}` as WebhookId
}

const urlLengthMax = 2_000

/**
 * Returns the URL as it is requested. Which addresses its host may have is judged at every connection.
 *
 * @throws Error that says what it must be
 */
export function parseWebhookUrl(text: string, allowsPrivate: boolean): string {
  const url = URL.parse(text)
  const isAllowed = url?.protocol === 'https:' || (allowsPrivate && url?.protocol === 'http:')
  if (!url || !isAllowed) throw new Error(`must be an https${allowsPrivate ? ' or http' : ''} URL`)
  if (url.username || url.password) throw new Error('must not contain credentials')
  if (url.href.length > urlLengthMax) throw new Error(`must have at most ${urlLengthMax} characters`)
  url.hash = ''
  return url.href
}
