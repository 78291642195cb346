import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { listenLocally, until } from '@plant-store/harness'
import { query } from '@plant-store/harness/postgres'
import { createRandom } from '@plant-store/harness/random'
import { openStorage } from '@plant-store/persistence'
import { mintSecret, mintWebhookId, type WebhookEvent } from '@plant-store/webhooks'
import Database from 'better-sqlite3'
import { type History, isPossible, takeEffect, toValue, type Value } from './history.ts'
import { figure } from './part.ts'

/**
 * The first webhook wants everything. Another must hear the same, less what it ignores.
 */
const wanted: readonly [readonly WebhookEvent[], readonly WebhookEvent[]] = [
  ['added', 'changed', 'removed'],
  ['added', 'removed'],
]
const drainTimeoutMs = 300_000

interface Announced {
  readonly event: WebhookEvent
  readonly value: Value
  readonly webhookId: string
}

interface Listener extends AsyncDisposable {
  readonly url: string
  /** The deliveries of each plant in order, once for each `webhook-id`. */
  readonly heard: ReadonlyMap<bigint, readonly Announced[]>
  /** Receives everything from now on. */
  isKind: boolean
}

/** Two webhooks of a store, with their listeners in this process. */
export class Listeners implements AsyncDisposable {
  readonly #url: string
  readonly #listeners: readonly Listener[]
  /** The deliveries received, with those that came twice. */
  received = 0
  #killAtReceipt = Number.POSITIVE_INFINITY
  #moment = Promise.withResolvers<void>()

  /** Adds them to a store, whose tables the tested program has made. */
  static async addTo(url: string, seed: number): Promise<Listeners> {
    await using storage = await openStorage({ url })
    const added = wanted.map((_, n) => listen(seed + n, () => listeners.#noteReceipt()))
    const listeners = new Listeners(url, await Promise.all(added))
    for (const [n, events] of wanted.entries()) {
      const webhook = {
        id: mintWebhookId(),
        url: `${listeners.#listeners[n]?.url}`,
        allowsPrivate: true,
        events,
        createdAt: new Date(n),
      }
      await storage.webhooks.add(webhook, mintSecret())
    }
    return listeners
  }

  private constructor(url: string, listeners: readonly Listener[]) {
    this.#url = url
    this.#listeners = listeners
  }

  /** Resolves after this many more deliveries. */
  untilReceived(count: number): Promise<void> {
    this.#moment = Promise.withResolvers()
    this.#killAtReceipt = this.received + count
    return this.#moment.promise
  }

  /** Expires every lease, as a killed process returns none. */
  async endLeases(): Promise<void> {
    const statement = 'update webhooks set leased_until = 0'
    if (!this.#url.startsWith('file:')) {
      await query(this.#url, statement)
      return
    }
    using database = closing(new Database(this.#url.slice('file:'.length)))
    database.exec(statement)
  }

  /** Accepts everything, and waits until all deliveries are made. */
  async drain(): Promise<void> {
    for (const listener of this.#listeners) {
      listener.isKind = true
    }
    await using storage = await openStorage({ url: this.#url })
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
  faults(history: History, stored: ReadonlyMap<bigint, Value>): readonly string[] {
    const [first, second] = this.#listeners.map(({ heard }) => heard)
    const faults: string[] = []
    for (const id of new Set([
      ...history.ids,
      ...stored.keys(),
      ...(first?.keys() ?? []),
    ])) {
      const announced = first?.get(id) ?? []
      const fault = faultOf(id, announced, history, stored.get(id))
      if (fault !== undefined) {
        faults.push(`of plant ${id}, ${fault}`)
      }
      const ofSecond = announced.filter(({ event }) => wanted[1].includes(event))
      if (idsOf(second?.get(id)) !== idsOf(ofSecond)) {
        const heard = idsOf(second?.get(id))
        faults.push(`of plant ${id}, the webhooks heard ${heard} and ${idsOf(ofSecond)}`)
      }
    }
    return faults
  }

  describe(): string {
    const heard = this.#listeners.flatMap(each => [...each.heard.values()].flat())
    const again = this.received - heard.length
    return `${figure(heard.length)} changes heard by ${wanted.length} webhooks, ${figure(again)} deliveries repeated`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#listeners.map(each => each[Symbol.asyncDispose]()))
  }

  #noteReceipt(): void {
    this.received++
    if (this.received === this.#killAtReceipt) {
      this.#moment.resolve()
    }
  }
}

const idsOf = (announced: readonly Announced[] = []) =>
  announced.map(({ webhookId }) => webhookId).join(', ')

const closing = (database: Database.Database) =>
  Object.assign(database, { [Symbol.dispose]: () => void database.close() })

/**
 * Receives most deliveries, some of them late, and now and then fails or cuts the
 * connection.
 */
async function listen(seed: number, noteReceipt: () => void): Promise<Listener> {
  const random = createRandom(seed)
  const known = new Set<string>()
  const heard = new Map<bigint, Announced[]>()
  const fails = (chance: number) => !listener.isKind && random.chance(chance)
  const note = (webhookId: string, body: string) => {
    if (known.has(webhookId)) {
      return
    }
    known.add(webhookId)
    const id = BigInt(/^\{"id":(-?\d+),/.exec(body)?.[1] ?? '')
    const event = webhookId.split('_', 1)[0] as WebhookEvent
    const announced = { event, value: toValue(JSON.parse(body)), webhookId }
    heard.set(id, [...(heard.get(id) ?? []), announced])
  }
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    if (fails(0.02)) {
      return void response.writeHead(500).end()
    }
    if (fails(0.1)) {
      await sleep(random.below(50))
    }
    // Received all the same: whether the answer arrives is another matter.
    note(`${request.headers['webhook-id']}`, body)
    noteReceipt()
    if (fails(0.02)) {
      request.socket.destroy()
    } else {
      response.end()
    }
  })
  const listener: Listener = {
    url: `http://127.0.0.1:${await listenLocally(server)}/`,
    heard,
    isKind: false,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return listener
}

/**
 * Returns why what was announced of a plant is not the order of its changes. Each change
 * must follow from the one before, as its client was told. Every answered change must be
 * among them, none before one that was answered before it was asked for.
 */
function faultOf(
  id: bigint,
  announced: readonly Announced[],
  history: History,
  stored: Value | undefined,
): string | undefined {
  let state: Value | undefined
  for (const { event, value } of announced) {
    if (!follows(event, value, state, history)) {
      return `${event} ${value} was announced after ${state ?? 'no plant'}`
    }
    state = event === 'removed' ? undefined : value
  }
  if (state !== stored) {
    return `the last that was announced is ${state ?? 'no plant'}, and stored is ${stored ?? 'none'}`
  }

  const written = announced.filter(({ event }) => event !== 'removed')
  const values = new Set(written.map(({ value }) => value))
  const answered = history.answeredWritesOf(id)
  const missed = answered.find(value => !values.has(value))
  if (missed !== undefined) {
    return `webhooks never heard of ${missed}`
  }
  const removals = announced.length - written.length
  const answeredRemovals = history.removals.get(id) ?? 0
  if (removals < answeredRemovals) {
    return `webhooks never heard of ${answeredRemovals - removals} removals`
  }
  return inversionOf(written, history)
}

/** Returns whether a change can follow a state, as its client was told. */
function follows(
  event: WebhookEvent,
  value: Value,
  state: Value | undefined,
  { writes }: History,
): boolean {
  if (event === 'removed') {
    return value === state
  }
  const operation = writes.get(value)
  if (operation === undefined || (event === 'added') !== (state === undefined)) {
    return false
  }
  const { kind, expected, outcome: told } = operation
  const { after, outcome } = takeEffect(kind, state, value, expected)
  return after === value && outcome.is === 'done' && isPossible(told, outcome)
}

function inversionOf(
  written: readonly Announced[],
  { writes }: History,
): string | undefined {
  let firstAnswer = Number.POSITIVE_INFINITY
  for (const { value } of written.toReversed()) {
    const operation = writes.get(value)
    if (operation !== undefined && operation.calledAt > firstAnswer) {
      return `${value} was announced before a change that was answered before it`
    }
    if (operation?.outcome.is === 'done') {
      firstAnswer = Math.min(firstAnswer, operation.answeredAt)
    }
  }
  return
}
