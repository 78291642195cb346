import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, listenLocally, temporaryFolder, until } from '@plant-store/harness'
import { createRandom, type Random } from '@plant-store/harness/random'
import { openStorage } from '@plant-store/persistence'
import { mintSecret, mintWebhookId } from '@plant-store/webhooks'
import Database from 'better-sqlite3'
import { readRange } from './kill.ts'
import { type Circumstances, type Finding, figure } from './part.ts'
import {
  killRunning,
  killWhileStarting,
  startProgram,
  type TestedProgram,
} from './program.ts'

const listeners = 2
const clients = 8
const createsOfRound = 60
/**
 * How long to wait for the first delivery. The program looks for webhooks every two
 * seconds.
 */
const deliveryTimeoutMs = 5_000
const drainTimeoutMs = 120_000

/**
 * Kills the program at random moments while it creates and delivers. In the end every
 * stored plant must have reached each webhook, under one id, and nothing else.
 */
export async function runAnnouncements({
  seed,
  programs,
  scale,
}: Circumstances): Promise<Finding> {
  const random = createRandom(seed)
  using folder = temporaryFolder()
  const file = join(folder.path, 'plants.db')
  const options = { databaseUrl: `file:${file}`, command: programs.server }
  await using resources = new AsyncDisposableStack()
  const receipts = new EventEmitter()
  let received = 0
  /** Resolves at the moment to kill the program in this round. */
  let moment = Promise.withResolvers<void>()
  let killAtReceipt: number | undefined
  receipts.on('receipt', () => {
    received++
    if (received === killAtReceipt) {
      moment.resolve()
    }
  })
  const webhooks = await addWebhooks(options, resources, () => listen(random, receipts))

  const failures: string[] = []
  const answered: bigint[] = []
  const rounds = Math.ceil(100 * scale)
  const takeIds = createIdSource(random)
  for (let round = 1; round <= rounds; round++) {
    endLeases(file)
    if (random.chance(0.1)) {
      await killWhileStarting(options, random)
    }
    await using program = await startProgram(options)
    const isDelivering = random.chance(0.7)
    const killAfter = 1 + random.below(createsOfRound)
    moment = Promise.withResolvers<void>()
    killAtReceipt = isDelivering ? received + killAfter : undefined
    let created = 0
    const work = async () => {
      while (created < createsOfRound) {
        const ids = takeIds()
        if (!(await create(program, random, ids))) {
          return
        }
        answered.push(...ids)
        created += ids.length
        if (!isDelivering && created >= killAfter) {
          moment.resolve()
        }
      }
    }
    const noteFailure = (error: Error) =>
      failures.push(`round ${round}: ${error.message}`)
    const working = Array.from({ length: clients }, () => work().catch(noteFailure))
    const timeout = sleep(deliveryTimeoutMs, undefined, { ref: false })
    await Promise.race([moment.promise, timeout])
    // The pause moves the kill into the middle of a commit, or of a delivery.
    await sleep(random.below(20))
    failures.push(...(await killRunning(program)))
    await Promise.all(working)
  }

  endLeases(file)
  makeKind(webhooks)
  await using program = await startProgram(options)
  await drain(options.databaseUrl).catch(error => failures.push(error.message))
  const stored = await readRange(program.operations, 0n, 2n ** 62n)
  const storedIds = new Set(stored.keys())
  failures.push(...lossesOf(answered, storedIds))
  for (const [n, webhook] of webhooks.entries()) {
    failures.push(...faultsOf(webhook, n, storedIds))
  }
  const duplicates = received - listeners * storedIds.size
  const deliveries = `${figure(received)} deliveries received, ${figure(duplicates)} of them more than once`
  const tried = `${rounds} kills; ${figure(storedIds.size)} plants for ${listeners} webhooks, ${deliveries}`
  return { tried, times: rounds, failures }
}

/** Returns a function that takes one or three new ids for a request. */
function createIdSource(random: Random): () => bigint[] {
  let nextId = 1n
  const takeId = () => nextId++
  return () => {
    const areSeveral = random.chance(0.2)
    return areSeveral ? [takeId(), takeId(), takeId()] : [takeId()]
  }
}

/** Returns a failure for each answered create whose plant is not stored. */
function lossesOf(
  answeredIds: readonly bigint[],
  storedIds: ReadonlySet<bigint>,
): readonly string[] {
  const lostIds = answeredIds.filter(id => !storedIds.has(id))
  return lostIds.map(id => `the answered create of plant ${id} is lost`)
}

interface Listener extends AsyncDisposable {
  readonly url: string
  /** The ids of the plants that it received. */
  readonly plants: ReadonlySet<bigint>
  /** The webhook-ids. */
  readonly events: ReadonlySet<string>
  /** Receives everything from now on. */
  isKind: boolean
}

/**
 * Receives most deliveries, some of them late, and now and then fails or cuts the
 * connection.
 */
async function listen(random: Random, receipts: EventEmitter): Promise<Listener> {
  const plants = new Set<bigint>()
  const events = new Set<string>()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) {
      body += chunk
    }
    const [, digits = ''] = /^\{"id":(-?\d+),/.exec(body) ?? []
    const id = BigInt(digits)
    if (!listener.isKind && random.chance(0.02)) {
      return void response.writeHead(500).end()
    }
    if (!listener.isKind && random.chance(0.1)) {
      await sleep(random.below(100))
    }
    // Received all the same: whether the answer arrives is another matter.
    plants.add(id)
    events.add(`${request.headers['webhook-id']}`)
    receipts.emit('receipt')
    if (!listener.isKind && random.chance(0.02)) {
      request.socket.destroy()
    } else {
      response.end()
    }
  })
  const listener: Listener = {
    url: `http://127.0.0.1:${await listenLocally(server)}/`,
    plants,
    events,
    isKind: false,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return listener
}

/** Makes listeners accept everything from now on. */
function makeKind(webhooks: readonly Listener[]): void {
  for (const webhook of webhooks) {
    webhook.isKind = true
  }
}

/** Adds the webhooks to a new store, whose tables the tested program makes. */
async function addWebhooks(
  options: { readonly databaseUrl: string; readonly command: Command },
  resources: AsyncDisposableStack,
  startListener: () => Promise<Listener>,
): Promise<readonly Listener[]> {
  await using _program = await startProgram(options)
  await using storage = await openStorage({ url: options.databaseUrl })
  const webhooks: Listener[] = []
  for (let n = 0; n < listeners; n++) {
    const listener = resources.use(await startListener())
    const webhook = {
      id: mintWebhookId(),
      url: listener.url,
      allowsPrivate: true,
      events: ['added'] as const,
      createdAt: new Date(n),
    }
    await storage.webhooks.add(webhook, mintSecret())
    webhooks.push(listener)
  }
  return webhooks
}

/** Returns how the plants that a webhook heard of differ from those that are stored. */
function faultsOf(
  { plants, events }: Listener,
  number: number,
  stored: ReadonlySet<bigint>,
): readonly string[] {
  const missed = [...stored].filter(id => !plants.has(id))
  const invented = [...plants].filter(id => !stored.has(id))
  const faults = [
    ...missed.map(id => `webhook ${number} never heard of plant ${id}`),
    ...invented.map(id => `webhook ${number} heard of plant ${id}`),
  ]
  if (events.size !== plants.size) {
    faults.push(`${figure(plants.size)} plants had ${figure(events.size)} webhook-ids`)
  }
  return faults
}

/** Creates plants in one of the ways there are. Returns whether that was answered. */
async function create(
  { operations, client }: TestedProgram,
  random: Random,
  ids: bigint[],
): Promise<boolean> {
  const [id, ...others] = ids as [bigint, ...bigint[]]
  if (others.length > 0) {
    const body = ids.map(each => `{"id":${each},"name":"of a batch"}`).join('\n')
    const headers = { 'content-type': 'application/x-ndjson' }
    const answer = await client
      .ask('POST', '/plants/batch', { body, headers })
      .catch(() => undefined)
    return answer?.status === 200
  }
  const text = { name: `plant ${id}` }
  const kind = random.pick(['create', 'replaceIf'] as const)
  const { is } = await operations.act(kind, id, text)
  return is === 'done'
}

/** Expires every lease, as a killed process returns none. */
function endLeases(file: string): void {
  const database = new Database(file)
  database.exec('update webhooks set leased_until = 0')
  database.close()
}

/** Waits until nothing waits any more. */
async function drain(url: string): Promise<void> {
  await using storage = await openStorage({ url })
  await until(
    'every plant to be delivered',
    async () => {
      const figures = await storage.webhooks.outbox.figures()
      // A webhook that was stopped by its failures is tried again at once.
      for (const { id } of await storage.webhooks.list()) {
        await storage.webhooks.retry(id)
      }
      return (
        figures.length === listeners &&
        figures.every(({ waiting, givenUp }) => waiting + givenUp === 0)
      )
    },
    drainTimeoutMs,
  )
}
