import { randomBytes } from 'node:crypto'
import ipaddr from 'ipaddr.js'
import { isPublicAddress } from './public-address.ts'

/** The name of a webhook for operators, logs and metrics. */
export type WebhookId = string & { readonly __brand: 'WebhookId' }

export type WebhookState = 'active' | 'stopped'

/** The changes of a plant that a webhook can ask for. */
export const webhookEvents = ['added', 'changed', 'removed'] as const

export type WebhookEvent = (typeof webhookEvents)[number]

/** A URL to which changes of plants are announced. */
export interface Webhook {
  readonly id: WebhookId
  readonly url: string
  /** Whether `http:` and private addresses are allowed. */
  readonly allowsPrivate: boolean
  /** The events that are announced to it, at least one. */
  readonly events: readonly WebhookEvent[]
  readonly createdAt: Date
  /**
   * A stopped webhook gets nothing, and what is changed meanwhile is not announced to it.
   */
  readonly state: WebhookState
  /** The number of failed attempts since the last success. */
  readonly failures: number
  /** The time of the first of them. */
  readonly failingSince?: Date
}

export function mintWebhookId(): WebhookId {
  return `wh_${randomBytes(6).toString('hex')}` as WebhookId
}

/**
 * Returns the events in a list that commas separate, each once.
 *
 * @throws Error that says what it must be
 */
export function parseWebhookEvents(text: string): readonly WebhookEvent[] {
  const names = new Set(text.split(',').map(name => name.trim()))
  const events = webhookEvents.filter(event => names.delete(event))
  if (names.size > 0) {
    throw new Error('must be some of added, changed and removed, separated by commas')
  }
  return events
}

const urlLengthMax = 2_000

/**
 * Returns the URL in the form that is requested. The addresses of a name are checked at
 * every connection.
 *
 * @throws Error that says what it must be
 */
export function parseWebhookUrl(text: string, allowsPrivate: boolean): string {
  const url = URL.parse(text)
  if (url?.protocol === 'http:' && !allowsPrivate) {
    throw new Error('must be https without --allow-private')
  }
  if (url === null || !['https:', 'http:'].includes(url.protocol)) {
    const schemes = allowsPrivate ? 'https or http' : 'https'
    throw new Error(`must be an ${schemes} URL`)
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (!allowsPrivate && ipaddr.isValid(host) && !isPublicAddress(host)) {
    throw new Error(`must not have the private address ${host} without --allow-private`)
  }
  if (url.username || url.password) {
    throw new Error('must not contain credentials')
  }
  if (url.href.length > urlLengthMax) {
    throw new Error(`must have at most ${urlLengthMax} characters`)
  }
  url.hash = ''
  return url.href
}
