import { createServer, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { listenLocally, until } from '@plant-store/harness'
import { query } from '@plant-store/harness/postgres'
import { createRandom } from '@plant-store/harness/random'
import { openStorage } from '@plant-store/persistence'
import { mintSecret, mintWebhookId, type WebhookEvent } from '@plant-store/webhooks'
import Database from 'better-sqlite3'
import {
  type History,
  isPossible,
  type Operation,
  takeEffect,
  toValue,
  type Value,
} from './history.ts'

const drainTimeoutMs = 300_000

/**
 * The events that each webhook wants, by the path of its listener. The second must hear
 * the same as the first, less what it ignores.
 */
const events: Readonly<Record<string, readonly WebhookEvent[]>> = {
  '/all': ['added', 'changed', 'removed'],
  '/some': ['added', 'removed'],
}

type Announced = ReturnType<typeof readDelivery>

function readDelivery({ url: path, headers }: IncomingMessage, body: string) {
  const webhookId = `${headers['webhook-id']}`
  const id = BigInt(/^\{"id":(-?\d+),/.exec(body)?.[1] ?? '')
  const event = webhookId.split('_', 1)[0] as WebhookEvent
  return { path, webhookId, id, event, value: toValue(JSON.parse(body)) }
}

export type Listener = Awaited<ReturnType<typeof startListener>>

/**
 * Listens to both webhooks in this process. It receives most deliveries, some of them
 * late, and now and then fails or cuts the connection.
 */
export async function startListener(seed: number) {
  const random = createRandom(seed)
  const heard = new Map<string, Announced>()
  let received = 0
  let isKind = false
  const fails = (chance: number) => !isKind && random.chance(chance)
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    if (fails(0.02)) {
      response.writeHead(500).end()
      return
    }
    if (fails(0.1)) {
      await sleep(random.below(50))
    }
    // Received all the same: whether the answer arrives is another matter.
    const announced = readDelivery(request, body)
    const key = `${announced.path} ${announced.webhookId}`
    heard.set(key, heard.get(key) ?? announced)
    received++
    if (fails(0.02)) {
      request.socket.destroy()
    } else {
      response.end()
    }
  })
  return {
    url: `http://127.0.0.1:${await listenLocally(server)}`,
    /** The deliveries in their order, once for each webhook and `webhook-id`. */
    heard,
    /** Returns how many deliveries came, with those that came twice. */
    received: () => received,
    /** Receives everything from now on. */
    beKind() {
      isKind = true
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** Adds the webhooks to a store, whose tables the tested program has made. */
export async function addWebhooks(url: string, listener: Listener): Promise<void> {
  await using storage = await openStorage({ url })
  for (const [path, wanted] of Object.entries(events)) {
    const webhook = {
      id: mintWebhookId(),
      url: `${listener.url}${path}`,
      allowsPrivate: true,
      events: wanted,
      createdAt: new Date(),
    }
    await storage.webhooks.add(webhook, mintSecret())
  }
}

/** Expires every lease of a store, as a killed process returns none. */
export async function endLeases(url: string): Promise<void> {
  const statement = 'update webhooks set leased_until = 0'
  if (!url.startsWith('file:')) {
    await query(url, statement)
    return
  }
  const database = new Database(url.slice('file:'.length))
  database.exec(statement)
  database.close()
}

/** Accepts everything, and waits until all deliveries of a store are made. */
export async function drain(url: string, listener: Listener): Promise<void> {
  listener.beKind()
  await using storage = await openStorage({ url })
  let before = 0
  const isDrained = async () => {
    const figures = await storage.webhooks.outbox.figures()
    const kept = figures.reduce((sum, each) => sum + each.waiting + each.givenUp, 0)
    // Deliveries that wait for an attempt, or were stopped, are tried again at once.
    if (kept >= before) {
      await Promise.all(figures.map(each => storage.webhooks.retry(each.webhook)))
    }
    before = kept
    return kept === 0
  }
  await until('every change to be delivered', isDrained, drainTimeoutMs)
}

/** Returns how what was heard differs from what clients and the store know. */
export function faultsOf(
  { heard }: Listener,
  { changes }: History,
  stored: ReadonlyMap<bigint, Value>,
): readonly string[] {
  const changesOf = Map.groupBy(changes, ({ id }) => id)
  const announcedTo = Map.groupBy(heard.values(), ({ path, id }) => `${path} ${id}`)
  const announcedIds = [...heard.values()].map(({ id }) => id)
  const ids = new Set([...changesOf.keys(), ...stored.keys(), ...announcedIds])
  const faults: string[] = []
  for (const id of ids) {
    const announced = announcedTo.get(`/all ${id}`) ?? []
    const fault = faultOf(announced, changesOf.get(id) ?? [], stored.get(id))
    if (fault !== undefined) {
      faults.push(`of plant ${id}, ${fault}`)
    }
    const ofSome = announced.filter(({ event }) => events['/some']?.includes(event))
    const wantedIds = idsOf(ofSome)
    const heardIds = idsOf(announcedTo.get(`/some ${id}`) ?? [])
    if (heardIds !== wantedIds) {
      faults.push(`of plant ${id}, the webhooks heard ${heardIds} and ${wantedIds}`)
    }
  }
  return faults
}

const idsOf = (announced: readonly Announced[]) =>
  announced.map(({ webhookId }) => webhookId).join(', ')

/**
 * Returns why what was announced of a plant is not the order of its changes. Each change
 * must follow from the one before, as its client was told. Every answered change must be
 * among them, none before one that was answered before it was asked for.
 */
function faultOf(
  announced: readonly Announced[],
  changes: readonly Operation[],
  stored: Value | undefined,
): string | undefined {
  // A batch that is sent again writes the same values, and its first time counts.
  const writes = new Map(changes.toReversed().map(each => [each.written, each]))
  let state: Value | undefined
  for (const { event, value } of announced) {
    if (!follows(event, value, state, writes.get(value))) {
      return `${event} ${value} was announced after ${state ?? 'no plant'}`
    }
    state = event === 'removed' ? undefined : value
  }
  if (state !== stored) {
    return `the last that was announced is ${state ?? 'no plant'}, and stored is ${stored ?? 'none'}`
  }

  const written = announced.filter(({ event }) => event !== 'removed')
  const values = new Set(written.map(({ value }) => value))
  const answered = changes.filter(({ outcome }) => outcome.is === 'done')
  const answeredWrites = answered.flatMap(change => change.written ?? [])
  const missed = answeredWrites.find(value => !values.has(value))
  if (missed !== undefined) {
    return `webhooks never heard of ${missed}`
  }
  const missedRemovals =
    answered.length - answeredWrites.length - (announced.length - written.length)
  if (missedRemovals > 0) {
    return `webhooks never heard of ${missedRemovals} removals`
  }
  return inversionOf(written.flatMap(({ value }) => writes.get(value) ?? []))
}

/** Returns whether a change can follow a state, as the client of a write was told. */
function follows(
  event: WebhookEvent,
  value: Value,
  state: Value | undefined,
  write: Operation | undefined,
) {
  if (event === 'removed') {
    return value === state
  }
  if (write === undefined || (event === 'added') !== (state === undefined)) {
    return false
  }
  const { after, outcome } = takeEffect(write.kind, state, value, write.expected)
  return after === value && outcome.is === 'done' && isPossible(write.outcome, outcome)
}

/** @param writes in the order in which they were announced */
function inversionOf(writes: readonly Operation[]): string | undefined {
  let firstAnswer = Number.POSITIVE_INFINITY
  for (const { written, calledAt, answeredAt, outcome } of writes.toReversed()) {
    if (calledAt > firstAnswer) {
      return `${written} was announced before a change that was answered before it`
    }
    if (outcome.is === 'done') {
      firstAnswer = Math.min(firstAnswer, answeredAt)
    }
  }
  return
}
