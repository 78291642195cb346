import { setImmediate } from 'node:timers/promises'
import type { Change } from '@plant-store/engine'
import fc, { type Scheduler } from 'fast-check'
import { expect, test } from 'vitest'
import { GroupQueue } from '../src/group-queue.ts'

type Ending = 'committed' | 'failed'
interface Limits {
  readonly queueChangesMax: number
  readonly queueTextCharsMax: number
  readonly groupChangesMax: number
  readonly groupTextCharsMax: number
}

const fewChanges: Limits = {
  queueChangesMax: 3,
  queueTextCharsMax: 1_000,
  groupChangesMax: 3,
  groupTextCharsMax: 500,
}
const littleText: Limits = {
  queueChangesMax: 20,
  queueTextCharsMax: 75,
  groupChangesMax: 3,
  groupTextCharsMax: 60,
}

/** More turns of the event loop than a change waits for if no group is running. */
const idleTurnsMax = 10

/** A database that ends its groups when the scheduler says so, and what it must hold. */
class Database {
  readonly #scheduler: Scheduler
  readonly #groupsMax: number
  readonly #limits: Limits
  /** The changes without an outcome, by name. */
  readonly pending = new Map<string, Change>()
  /** The names of the changes in the order in which their groups began. */
  readonly begun: number[] = []
  readonly endings = new Map<string, Ending>()
  readonly violations: string[] = []
  /** How the next group ends. */
  nextEnding: Ending = 'committed'
  #running = 0

  constructor(scheduler: Scheduler, groupsMax: number, limits: Limits) {
    this.#scheduler = scheduler
    this.#groupsMax = groupsMax
    this.#limits = limits
  }

  async runGroup(group: readonly Change[]): Promise<readonly number[]> {
    this.#running += 1
    this.#checkGroup(group)
    this.begun.push(...group.map(change => Number(nameOf(change))))
    await this.#scheduler.schedule(Promise.resolve())

    this.#running -= 1
    for (const change of group) {
      this.endings.set(nameOf(change), this.nextEnding)
      this.pending.delete(nameOf(change))
    }
    if (this.nextEnding === 'failed') {
      throw new Error('failed')
    }
    return group.map(change => Number(nameOf(change)))
  }

  /** Whether the queue must take these changes. */
  hasRoomFor(changes: readonly Change[]): boolean {
    if (this.pending.size === 0) {
      return true
    }
    const all = [...this.pending.values(), ...changes]
    const { queueChangesMax, queueTextCharsMax } = this.#limits
    return all.length <= queueChangesMax && textCharsOf(all) <= queueTextCharsMax
  }

  /** Returns the outcome that a submission of these changes must have. */
  outcomeOf(changes: readonly Change[]): Ending | 'refused' {
    const endings = changes.map(change => this.endings.get(nameOf(change)) ?? 'refused')
    return endings.find(ending => ending !== 'committed') ?? 'committed'
  }

  #checkGroup(group: readonly Change[]): void {
    if (this.#running > this.#groupsMax) {
      this.violations.push(`${this.#running} groups at once`)
    }
    const { groupChangesMax, groupTextCharsMax } = this.#limits
    const hasTooMuchText = textCharsOf(group) > groupTextCharsMax
    if (group.length > groupChangesMax || (hasTooMuchText && group.length > 1)) {
      this.violations.push(`a group of ${group.map(nameOf)} is too long`)
    }
  }
}

/** Submits changes to a queue and notes what becomes of them. */
class Client {
  readonly #database: Database
  readonly #queue: GroupQueue
  readonly #drains: Promise<number>[] = []
  #submitted = 0
  #nextName = 0
  /** The outcome of each submission: `right`, or what it was instead. */
  readonly outcomes = new Map<number, string>()

  constructor(database: Database, queue: GroupQueue) {
    this.#database = database
    this.#queue = queue
  }

  isWaiting(): boolean {
    return this.outcomes.size < this.#submitted
  }

  drain(): void {
    const drained = this.#queue.drain()
    this.#drains.push(drained.then(() => this.#queue.pending()))
  }

  /** Returns how many changes were pending after each drain. */
  pendingAfterDrains(): Promise<readonly number[]> {
    return Promise.all(this.#drains)
  }

  submit(): void {
    const index = this.#submitted
    this.#submitted += 1
    const changes = this.#createChanges(index)
    const isTaken = this.#drains.length === 0 && this.#database.hasRoomFor(changes)
    if (isTaken) {
      for (const change of changes) {
        this.#database.pending.set(nameOf(change), change)
      }
    }

    const note = (outcome: string) => {
      const expected = isTaken ? this.#database.outcomeOf(changes) : 'refused'
      this.outcomes.set(index, outcome === expected ? 'right' : outcome)
    }
    const names = `${changes.map(nameOf)}`
    this.#queue.submit(changes).then(
      rows => note(`${rows}` === names ? 'committed' : `the rows of ${rows}`),
      (error: Error & { code?: string }) =>
        note(error.code === undefined ? 'failed' : 'refused'),
    )
  }

  /** Some are longer than all that may be pending, and some are longer than a group. */
  #createChanges(index: number): readonly Change[] {
    const text = 'x'.repeat(index % 9 === 0 ? 100 : (index * 5) % 13)
    const count = [1, 1, 2, 1, 7][index % 5] ?? 1
    const first = this.#nextName
    this.#nextName += count
    return Array.from({ length: count }, (_, at) => [
      'notes.insert',
      `${first + at}`,
      text,
    ])
  }
}

const step = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.constantFrom('submit', 'submit', 'turn', 'commit', 'fail'),
  },
  { weight: 1, arbitrary: fc.constant('drain') },
)

test('each change has the outcome of its group, once and no earlier', async () => {
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(step, { maxLength: 80, size: 'max' }),
    fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
    fc.constantFrom(fewChanges, littleText),
    async (scheduler, steps, groupsMax, limits) => {
      const database = new Database(scheduler, groupsMax, limits)
      const queue = new GroupQueue({
        groupsMax,
        ...limits,
        runGroup: group => database.runGroup(group),
      })
      const client = new Client(database, queue)

      for (const name of steps) {
        await take(name, { scheduler, database, client })
      }
      await finish({ scheduler, database, client })

      const wrong = [...client.outcomes.values()].filter(outcome => outcome !== 'right')
      expect(wrong, 'outcomes that are not those of their groups').toEqual([])
      expect(database.begun, 'changes begin in their order').toEqual(
        database.begun.toSorted((one, other) => one - other),
      )
      expect(database.violations).toEqual([])
      expect(queue.pending(), 'pending at the end').toBe(0)
      const pending = await client.pendingAfterDrains()
      expect(pending.filter(count => count > 0)).toEqual([])
    },
  )

  await fc.assert(property, { numRuns: 500 })
})

interface Actors {
  readonly scheduler: Scheduler
  readonly database: Database
  readonly client: Client
}

async function take(name: string, { scheduler, database, client }: Actors) {
  if (name === 'submit') {
    client.submit()
  } else if (name === 'turn') {
    await setImmediate()
  } else if (name === 'drain') {
    client.drain()
  } else if (scheduler.count() > 0) {
    database.nextEnding = name === 'commit' ? 'committed' : 'failed'
    await scheduler.waitOne()
  }
  await new Promise(process.nextTick)
}

/** Commits all groups until every submission has its outcome. */
async function finish({ scheduler, database, client }: Actors) {
  database.nextEnding = 'committed'
  for (let idleTurns = 0; client.isWaiting() && idleTurns < idleTurnsMax; idleTurns++) {
    await setImmediate()
    if (scheduler.count() > 0) {
      await scheduler.waitOne()
      idleTurns = 0
    }
  }
  expect(client.isWaiting(), 'a submission has no outcome').toBe(false)
}

test('changes of the two turns after a group share the next one', async () => {
  const { queue, begun, endGroup } = openQueue()
  const first = submit(queue, 'a')
  await setImmediate()
  const second = submit(queue, 'b')
  await setImmediate()

  endGroup(0)
  await first
  await new Promise(process.nextTick)
  submit(queue, 'c')
  await setImmediate()
  const third = submit(queue, 'd')
  expect(begun, 'after one turn').toEqual([['a']])
  await setImmediate()

  expect(begun, 'after two turns').toEqual([['a'], ['b', 'c', 'd']])
  endGroup(1)
  await Promise.all([second, third])
})

test('a change that finds no group running begins at once', async () => {
  const { queue, begun, endGroup } = openQueue()
  const first = submit(queue, 'a')
  await setImmediate()
  endGroup(0)
  await first
  await new Promise(process.nextTick)

  submit(queue, 'b')
  await setImmediate()

  expect(begun).toEqual([['a'], ['b']])
})

test('a group with fewer outcomes than changes fails', async () => {
  const queue = new GroupQueue({ groupsMax: 1, runGroup: async () => [1] })

  const submitted = queue.submit([
    ['remove', 'a'],
    ['remove', 'b'],
  ])

  await expect(submitted).rejects.toThrow('every change has one outcome')
  expect(queue.pending()).toBe(0)
})

/** Opens a queue whose groups end one by one. */
function openQueue() {
  const ends: (() => void)[] = []
  const begun: string[][] = []
  const queue = new GroupQueue({
    groupsMax: 1,
    ...littleText,
    async runGroup(group) {
      begun.push(group.map(nameOf))
      await new Promise<void>(resolve => ends.push(resolve))
      return group.map(() => 1)
    },
  })
  return { queue, begun, endGroup: (index: number) => ends[index]?.() }
}

function submit(queue: GroupQueue, name: string): Promise<readonly number[]> {
  return queue.submit([['remove', name]])
}

function nameOf([, name]: Change): string {
  return `${name}`
}

function textCharsOf(changes: readonly Change[]): number {
  return changes.flat().join('').length
}
