import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '@plant-store/harness'
import { createRandom, type Random } from '@plant-store/harness/random'
import { History, type Value } from './history.ts'
import { type Act, type Operations, recorded } from './operations.ts'
import { type Circumstances, type Finding, figure } from './part.ts'
import { killRunning, killWhileStarting, startProgram } from './program.ts'

const clients = 32
/** Ids that all clients share. Other ids belong to one round. */
const contestedIds = Array.from({ length: 24 }, (_, n) => BigInt(-1 - n))
const idsOfRound = 1_000_000n
const contestants = ['create', 'replace', 'replaceIf', 'read'] as const
const removals = ['remove', 'removeIf'] as const

/**
 * Kills the program at random moments of a load, and checks each time that the store
 * agrees with the answers. An answered change must be stored, a refused one must not be,
 * and one without an answer is stored completely or not at all.
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
  const history = new History()
  const failures: string[] = []
  /** The state of every id, as last read. */
  const known = new Map<bigint, Value>()
  const rounds = Math.ceil(100 * scale)

  for (let round = 0; ; round++) {
    const isLast = round === rounds
    // Opening a store after a kill reads its log, and a kill must be able to interrupt
    // that too.
    if (!isLast && random.chance(0.2)) {
      await killWhileStarting(options, random)
    }
    await using program = await startProgram(options)

    const found = await readContestedAndRound(program.operations, round - 1)
    for (const id of history.settle(found, known)) {
      failures.push(
        `after kill ${round} no order of events explains plant ${id}, which is now ${found.get(id) ?? 'absent'}`,
      )
    }
    remember(known, found)
    if (isLast) {
      const all = await readRange(program.operations, -1_000n, 2n ** 62n)
      failures.push(...differences(known, all))
      break
    }

    let isOver = false
    let answers = 0
    const killAfter = 1 + random.below(400)
    const moment = Promise.withResolvers<void>()
    let nextId = BigInt(round) * idsOfRound
    const act = recorded(program.operations, history)
    const work = async () => {
      while (!isOver) {
        const outcome = await actOnce(act, random, () => nextId++)
        if (outcome.is === 'unknown') {
          return
        }
        if (++answers === killAfter) {
          moment.resolve()
        }
      }
    }
    const working = Array.from({ length: clients }, () =>
      work().catch(error => failures.push(`round ${round}: ${error.message}`)),
    )
    // Not later, so that the round ends on a busy machine.
    await Promise.race([moment.promise, sleep(1_200, undefined, { ref: false })])
    // The pause moves the kill from between two answers into the middle of a commit.
    await sleep(random.below(20))
    failures.push(...(await killRunning(program)))
    isOver = true
    await Promise.all(working)
  }
  const { counts, answeredWrites } = history
  const refused = counts.taken + counts.absent + counts.refused
  const tried = [
    `${rounds} kills under ${clients} clients`,
    `${figure(answeredWrites)} writes answered`,
    `${figure(refused)} refused`,
    `${figure(counts.unknown)} cut off`,
  ]
  return {
    tried: tried.join(', '),
    times: rounds,
    failures,
  }
}

/** Replaces the states of the contested ids, and adds those of a round. */
function remember(known: Map<bigint, Value>, found: ReadonlyMap<bigint, Value>): void {
  for (const id of contestedIds) {
    known.delete(id)
  }
  for (const [id, value] of found) {
    known.set(id, value)
  }
}

/** Returns how the store differs from its last reads: later kills must not change it. */
function differences(
  known: ReadonlyMap<bigint, Value>,
  all: ReadonlyMap<bigint, Value>,
): readonly string[] {
  const changed = [...known.keys()].filter(id => all.get(id) !== known.get(id))
  const unknown = [...all.keys()].filter(id => !known.has(id))
  return [
    ...changed.map(id => `plant ${id} changed later`),
    ...unknown.map(id => `plant ${id} came from nowhere`),
  ]
}

async function actOnce(act: Act, random: Random, newId: () => bigint) {
  const text = {
    name: `n${random.below(2 ** 30)}-${random.below(2 ** 30)}`,
    tag: 'x'.repeat(random.below(400)),
  }
  if (random.chance(0.7)) {
    return await act('create', newId(), text)
  }
  const id = random.pick(contestedIds)
  return await act(random.pick(random.chance(0.8) ? contestants : removals), id, text)
}

/** Reads every plant that a round can have changed. */
async function readContestedAndRound(
  operations: Operations,
  round: number,
): Promise<Map<bigint, Value>> {
  const contested = await readRange(operations, -1_000n, 0n)
  if (round < 0) {
    return contested
  }
  const first = BigInt(round) * idsOfRound
  return new Map([
    ...contested,
    ...(await readRange(operations, first - 1n, first + idsOfRound)),
  ])
}

/** Reads the plants with ids between two others. */
export async function readRange(
  operations: Operations,
  above: bigint,
  below: bigint,
): Promise<Map<bigint, Value>> {
  const found = new Map<bigint, Value>()
  const limit = 1_000
  for (let after = above; ; ) {
    const page = await operations.list({ after, limit })
    if (page === undefined) {
      throw new Error('a started store does not answer')
    }
    for (const [id, value] of page) {
      if (id < below) {
        found.set(id, value)
      }
    }
    const last = page.at(-1)
    if (page.length < limit || last === undefined || last[0] >= below) {
      return found
    }
    after = last[0]
  }
}
