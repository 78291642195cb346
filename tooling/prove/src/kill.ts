import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { launchServer, temporaryFolder, until } from '@plant-store/harness'
import { createRandom, type Random } from '@plant-store/harness/random'
import { type Client, jsonOf } from '@plant-store/http/testing'
import {
  addWebhooks,
  drain,
  endLeases,
  faultsOf,
  startListener,
} from './announcements.ts'
import { History, type Text, toValue, type Value } from './history.ts'
import { type Operations, recorded } from './operations.ts'
import { type Circumstances, type Finding, figure } from './part.ts'
import { startProgram, type TestedProgram } from './program.ts'

const clients = 32
/** Ids that all clients share. Other ids belong to one round. */
const contestedIds = Array.from({ length: 24 }, (_, n) => BigInt(-1 - n))
const idsOfRound = 1_000_000n
const contestants = ['create', 'replace', 'replaceIf', 'read'] as const
const removals = ['remove', 'removeIf'] as const
const answersOfRound = 400
/** The program begins to deliver within half a second. */
const deliveryTimeoutMs = 5_000

/**
 * Kills the program at random moments of a load, or of its deliveries to two webhooks.
 * It checks each time that the store agrees with the answers. An answered change must be
 * stored, a refused one must not be, and one without an answer is stored completely or
 * not at all. A batch that was cut off adds the rest when it is sent again.
 *
 * In the end every answered change must have reached each webhook that wants it, in the
 * order of the changes of a plant, under one `webhook-id`.
 *
 * @param databaseUrl by default a new SQLite file
 */
export async function runKills(
  { seed, programs, scale }: Circumstances,
  databaseUrl?: string,
): Promise<Finding> {
  const random = createRandom(seed)
  using folder = temporaryFolder()
  const options = {
    databaseUrl: databaseUrl ?? `file:${join(folder.path, 'plants.db')}`,
    command: programs.server,
  }
  await startProgram(options).then(program => program[Symbol.asyncDispose]())
  await using listener = await startListener(seed)
  await addWebhooks(options.databaseUrl, listener)
  const history = new History()
  const failures: string[] = []
  let known: ReadonlyMap<bigint, Value> = new Map()
  const rounds = Math.ceil(100 * scale)
  let batches: readonly Batch[] = []

  for (let round = 0; ; round++) {
    const isLast = round === rounds
    // Opening a store after a kill reads its log, and a kill must be able to interrupt
    // that too.
    if (!isLast && random.chance(0.2)) {
      await using _server = launchServer(options)
      await sleep(random.below(400))
    }
    await endLeases(options.databaseUrl)
    await using program = await startProgram(options)

    failures.push(...(await sendAgain(program.client, batches, history)))
    const found = await readStore(program.operations)
    const unexplained = history.settle(found, known)
    failures.push(...unexplained.map(fault => `after kill ${round} ${fault}`))
    known = found
    if (isLast) {
      await drain(options.databaseUrl, listener).catch(error =>
        failures.push(error.message),
      )
      failures.push(...faultsOf(listener, history, found))
      break
    }

    const load = startLoad(program, history, random, BigInt(round) * idsOfRound)
    const [count, most] = random.chance(0.5)
      ? [listener.received, 200]
      : [load.answers, answersOfRound]
    const enough = count() + 1 + random.below(most)
    // Not later, so that the round ends on a busy machine.
    const isMoment = () => count() >= enough
    await until('the moment', isMoment, deliveryTimeoutMs).catch(() => {})
    // The pause moves the kill from between two answers into the middle of a commit.
    await sleep(random.below(20))
    const ending = await program.end('SIGKILL')
    const faults = await load.ended
    if (ending !== 'SIGKILL') {
      faults.push(`it ended before it was killed: ${ending}`)
    }
    failures.push(...faults.map(fault => `round ${round}: ${fault}`))
    batches = load.cutBatches
  }
  const { counts, changes } = history
  const answered = changes.filter(({ outcome }) => outcome.is === 'done')
  const heard = listener.heard.size
  const refused = counts.taken + counts.absent + counts.refused
  const tried = [
    `${rounds} kills under ${clients} clients`,
    `${figure(answered.length)} writes answered`,
    `${figure(refused)} refused`,
    `${figure(counts.unknown)} cut off`,
    `${figure(heard)} changes heard by 2 webhooks`,
    `${figure(listener.received() - heard)} deliveries repeated`,
  ]
  return { tried: tried.join(', '), times: rounds, failures }
}

/** Starts the clients of one round. */
function startLoad(
  { client, operations }: TestedProgram,
  history: History,
  random: Random,
  firstId: bigint,
) {
  const act = recorded(operations, history)
  let answers = 0
  const faults: string[] = []
  const cutBatches: Batch[] = []
  let nextId = firstId

  const actOnce = async () => {
    const text = newText(random)
    const isOfRound = random.chance(0.7)
    const kind = random.pick(random.chance(0.8) ? contestants : removals)
    const { is } = isOfRound
      ? await act('create', nextId++, text)
      : await act(kind, random.pick(contestedIds), text)
    return is !== 'unknown'
  }
  const sendBatch = async () => {
    const length = 1 + random.below(100)
    const batch = Array.from({ length }, () => ({ id: nextId++, text: newText(random) }))
    const counted = await send(client, batch, history)
    if (counted !== length) {
      cutBatches.push(batch)
    }
    return counted > 0
  }
  // Until the program is killed, or has given enough answers.
  const work = async () => {
    while (answers < answersOfRound) {
      const isAnswered = random.chance(0.02) ? await sendBatch() : await actOnce()
      if (!isAnswered) {
        return
      }
      answers++
    }
  }
  const working = Array.from({ length: clients }, () =>
    work().catch(error => faults.push(error.message)),
  )
  return {
    answers: () => answers,
    cutBatches,
    /** Resolves after the kill, to what is wrong with the answers. */
    ended: Promise.all(working).then(() => faults),
  }
}

function newText(random: Random): Text {
  return {
    name: `n${random.below(2 ** 30)}-${random.below(2 ** 30)}`,
    tag: 'x'.repeat(random.below(400)),
  }
}

type Batch = readonly { readonly id: bigint; readonly text: Text }[]

/**
 * Sends a batch of creates, which are all done if it counts all as created. Resolves to
 * how many plants of it exist, which is 0 without an answer.
 */
async function send(client: Client, batch: Batch, history: History): Promise<number> {
  const lines = batch.map(({ id, text }) => `{"id":${id},${toValue(text).slice(1)}`)
  const headers = { 'content-type': 'application/x-ndjson' }
  const answered = client
    .ask('POST', '/plants/batch', { body: lines.join('\n'), headers })
    .then(jsonOf)
    .catch(() => ({})) as Promise<{ created?: bigint; existing?: bigint }>
  const isDone = answered.then(({ created }) => Number(created) === batch.length)
  const asked = batch.map(({ id, text }) =>
    history.perform({ id, kind: 'create', written: toValue(text) }, async () => ({
      is: (await isDone) ? 'done' : 'unknown',
    })),
  )
  await Promise.all(asked)
  const { created = 0n, existing = 0n } = await answered
  return Number(created + existing)
}

/**
 * Sends batches again. Returns a failure for each that does not exist completely then.
 */
async function sendAgain(client: Client, batches: readonly Batch[], history: History) {
  const failures: string[] = []
  for (const batch of batches) {
    const counted = await send(client, batch, history)
    if (counted !== batch.length) {
      failures.push(
        `${counted} of a batch of ${batch.length} exist after it was sent again`,
      )
    }
  }
  return failures
}

/** Reads every plant of a store. */
export async function readStore(operations: Operations): Promise<Map<bigint, Value>> {
  const found = new Map<bigint, Value>()
  let after = -1_000n
  for (;;) {
    const page = await operations.list(after, 1_000)
    assert(page, 'a started store does not answer')
    if (page.length === 0) {
      return found
    }
    for (const [id, value] of page) {
      found.set(id, value)
      after = id
    }
  }
}
