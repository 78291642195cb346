import { writeJsonRecord } from '@plant-store/json'
import type { Claim, Delivery } from './ports.ts'
import { signedHeaders } from './signature.ts'
import type { Webhook } from './webhook.ts'

/** One attempt to deliver. The body is JSON. */
export interface Post extends Pick<Webhook, 'url' | 'allowsPrivate'> {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Ends the attempt, which then neither succeeded nor failed. */
  readonly signal: AbortSignal
}

export interface PostAnswer {
  readonly status: number
  /** The pause that the listener asks for before the next attempt, if it does. */
  readonly retryAfterMs?: number | undefined
  /** Whether the listener sent more than its status needs, so that the answer was cut. */
  readonly isExcessive: boolean
}

/** Resolves to the answer. Rejects with an Error that says in words why there is none. */
export type SendPost = (post: Post) => Promise<PostAnswer>

export type AttemptOutcome =
  | { readonly kind: 'received'; readonly isExcessive: boolean }
  /** The listener wants no more deliveries. */
  | { readonly kind: 'gone' }
  /** The attempt was ended by its signal. */
  | { readonly kind: 'aborted' }
  | {
      readonly kind: 'failed'
      readonly reason: string
      readonly retryAfterMs?: number | undefined
    }

export async function attempt(
  send: SendPost,
  { webhook, secret }: Claim,
  { event, plant, version }: Delivery,
  signal: AbortSignal,
): Promise<AttemptOutcome> {
  const { url, allowsPrivate } = webhook
  const body = writeJsonRecord(plant)
  // A version names one state, which was stored once and ended once.
  const message = { id: `${event}_${version}`, sentAtMs: Date.now(), body }
  const headers = { ...signedHeaders(message, secret), 'webhook-event': `plant.${event}` }
  try {
    const answer = await send({ url, allowsPrivate, headers, body, signal })
    return outcomeOf(answer)
  } catch (error) {
    if (signal.aborted) {
      return { kind: 'aborted' }
    }
    return { kind: 'failed', reason: shortReason(error as Error) }
  }
}

function outcomeOf(answer: PostAnswer): AttemptOutcome {
  const { status, retryAfterMs, isExcessive } = answer
  if (status >= 200 && status < 300) {
    return { kind: 'received', isExcessive }
  }
  if (status === 410) {
    return { kind: 'gone' }
  }
  return { kind: 'failed', reason: `answered ${status}`, retryAfterMs }
}

const reasonCharsMax = 200

/** Returns a reason for logs and terminals. A listener can influence it. */
function shortReason({ message }: Error) {
  return message.slice(0, reasonCharsMax).replaceAll(/\p{C}/gu, '?')
}
