import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { launchServer, type ServerOptions, temporaryFolder } from '@plant-store/harness'
import { createRandom, type Random } from '@plant-store/harness/random'
import { createHistory, type Value } from './history.ts'
import { type Operations, operationsOver, recorded } from './operations.ts'
import { type Circumstances, type Finding, figure, type Part, timeIsUp } from './part.ts'
import { connectClient, startProgram } from './program.ts'

const clients = 32
/** Ids that every client fights for; the others belong to one round. */
const contestedIds = Array.from({ length: 24 }, (_, n) => BigInt(-1 - n))
const idsOfRound = 1_000_000n

export const killPart: Part = { name: 'kill', share: 0.36, run: runKills }

/**
 * @param databaseUrl an SQLite file of its own unless it is given
 *
 * Kills the program at random moments of a load, and looks after each whether what clients were told still explains
 * what is there: what was answered is, what was refused isn't, and what had no answer is there whole or not at all.
 */
export async function runKills(
  circumstances: Circumstances,
  kills = 100,
  databaseUrl?: string,
): Promise<Finding> {
  const random = createRandom(circumstances.seed)
  using folder = temporaryFolder()
  const options = {
    databaseUrl: databaseUrl ?? `file:${join(folder.path, 'plants.db')}`,
    preload: circumstances.preload,
  }
  const history = createHistory()
  const failures: string[] = []
  /** What every id is known to be, from the last time that it was read. */
  const known = new Map<bigint, Value>()
  let lost = 0
  let killed = 0
  let description: string | undefined
  const wanted = Math.ceil(kills * circumstances.scale)

  for (let round = 0; round <= wanted; round++) {
    const isLast = round === wanted || timeIsUp(circumstances)
    if (!isLast && random.chance(0.2)) await killWhileStarting(options, random)
    await using program = await startProgram(options)
    description ??= await (await fetch(`${program.url}/openapi.json`)).text()
    const client = await connectClient(program, description)
    const plain = operationsOver(client)

    const first = BigInt(round - 1) * idsOfRound
    const found = await readBack(plain, first)
    history.settle(found)
    const unexplained = history.unexplained(known)
    lost += unexplained.length
    for (const id of unexplained) {
      failures.push(
        `after kill ${killed} (seed ${circumstances.seed}) no order of events explains plant ${id}, which is now ${found.get(id) ?? 'absent'}`,
      )
    }
    for (const id of contestedIds) known.delete(id)
    for (const [id, value] of found) known.set(id, value)
    if (isLast) {
      failures.push(...(await compareAll(plain, known)))
      client.close()
      break
    }

    let isOver = false
    let answers = 0
    const killAfter = 1 + random.below(400)
    const moment = Promise.withResolvers<void>()
    const base = BigInt(round) * idsOfRound
    let made = 0n
    const operations = recorded(plain, history)
    const work = async () => {
      while (!isOver) {
        try {
          const outcome = await actOnce(operations, random, () => base + made++)
          if (outcome.is === 'unknown') return
          if (++answers === killAfter) moment.resolve()
        } catch (error) {
          failures.push(`round ${round}: ${(error as Error).message}`)
          return
        }
      }
    }
    const working = Array.from({ length: clients }, work)
    // Not later than that, so that a machine that is busy is done some day.
    await Promise.race([moment.promise, sleep(1_200, undefined, { ref: false })])
    // From between two answers to the middle of a commit.
    await sleep(random.below(20))
    const ended = await program.end('SIGKILL')
    if (ended !== 'SIGKILL') failures.push(`it ended before it was killed: ${ended}`)
    isOver = true
    await Promise.all(working)
    killed++
    client.close()
  }
  const { counts } = history
  return {
    tried: `${figure(killed)} of ${figure(wanted)} kills under ${clients} clients; ${figure(history.answeredWrites())} writes answered, ${figure(counts.taken + counts.absent + counts.refused)} refused, ${figure(counts.unknown)} cut off`,
    times: killed,
    failures,
    lost,
  }
}

async function actOnce(operations: Operations, random: Random, newId: () => bigint) {
  const text = {
    name: `n${random.below(2 ** 30)}-${random.below(2 ** 30)}`,
    tag: 'x'.repeat(random.below(400)),
  }
  if (random.chance(0.7)) return await operations.create(newId(), text)
  const id = random.pick(contestedIds)
  const turn = random.below(10)
  if (turn < 3) return await operations.create(id, text)
  if (turn < 6) return await operations.replace(id, text)
  return turn < 9 ? await operations.remove(id) : await operations.read(id)
}

/** Reads every plant that a round can have touched. */
async function readBack(operations: Operations, first: bigint): Promise<Map<bigint, Value>> {
  const found = new Map<bigint, Value>()
  await readRange(operations, found, -1_000n, 0n)
  if (first >= 0n) await readRange(operations, found, first - 1n, first + idsOfRound)
  return found
}

/** Reads the plants with ids between two others. */
export async function readRange(
  operations: Operations,
  found: Map<bigint, Value>,
  above: bigint,
  below: bigint,
): Promise<void> {
  const limit = 1_000
  for (let after = above; ; ) {
    const page = await operations.list({ after, limit })
    if (page === undefined) throw new Error('a store that was just started does not answer')
    for (const [id, value] of page) if (id < below) found.set(id, value)
    const last = page.at(-1)
    if (page.length < limit || last === undefined || last[0] >= below) return
    after = last[0]
  }
}

/** Later kills must not touch what was there long before. */
async function compareAll(operations: Operations, known: ReadonlyMap<bigint, Value>): Promise<string[]> {
  const found = new Map<bigint, Value>()
  await readRange(operations, found, -1_000n, 2n ** 62n)
  const failures: string[] = []
  for (const [id, value] of known) if (found.get(id) !== value) failures.push(`plant ${id} changed later`)
  for (const id of found.keys()) if (!known.has(id)) failures.push(`plant ${id} came from nowhere`)
  return failures
}

/** Opening a store after a kill reads its log; that must be safe to cut short too. */
async function killWhileStarting(options: ServerOptions, random: Random): Promise<void> {
  await using _server = launchServer(options)
  await sleep(random.below(400))
}
