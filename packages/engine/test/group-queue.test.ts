import { setImmediate } from 'node:timers/promises'
import type { Change } from '@plant-store/engine'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GroupQueue } from '../src/group-queue.ts'

const groupChangesMax = 3
/** Of changes that are submitted together. */
const submissionChangesMax = 4
const fewChanges = { queueChangesMax: 3, queueTextCharsMax: 1_000, groupChangesMax }
const littleText = { queueChangesMax: 20, queueTextCharsMax: 75, groupChangesMax }
/** More turns of the event loop than a change waits for that no transaction keeps. */
const idleTurnsMax = 10

const step = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.constantFrom('submit', 'submit', 'turn', 'commit', 'fail'),
  },
  { weight: 1, arbitrary: fc.constant('drain') },
)

test('each change has the outcome of its transaction, once and no earlier, whatever ends first', async () => {
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(step, { maxLength: 80, size: 'max' }),
    fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
    fc.constantFrom(fewChanges, littleText),
    async (scheduler, steps, groupsMax, limits) => {
      const begun: string[] = []
      const ended = new Map<string, 'committed' | 'failed'>()
      const outcomes: { at: number; outcome: string }[] = []
      const waiting = new Map<number, readonly Change[]>()
      const broken: string[] = []
      let underWay = 0
      let ends: 'committed' | 'failed' = 'committed'
      const queue = new GroupQueue({
        groupsMax,
        ...limits,
        async runGroup(group) {
          underWay++
          if (underWay > groupsMax) {
            broken.push(`${underWay} transactions at once`)
          }
          const submissions = new Set(group.map(change => submissionOf(nameOf(change))))
          if (group.length > groupChangesMax && submissions.size > 1) {
            broken.push(`${group.length} changes in one`)
          }
          begun.push(...group.map(nameOf))
          await scheduler.schedule(Promise.resolve())
          underWay--
          for (const change of group) {
            ended.set(nameOf(change), ends)
          }
          if (ends === 'failed') {
            throw new Error('failed')
          }
          return group.map(change => Number(nameOf(change)))
        },
      })

      let submitted = 0
      const drains: Promise<number>[] = []
      const expected = (name: string) =>
        begun.includes(name) ? ended.get(name) : 'refused'
      const isRoomFor = (changes: readonly Change[]) =>
        waiting.size === 0 ||
        (sum([...waiting.values()].map(each => each.length)) + changes.length <=
          limits.queueChangesMax &&
          textOf([...waiting.values(), changes].flat()) <= limits.queueTextCharsMax)
      const submit = () => {
        const at = submitted++
        // Some are longer than all that may wait together, and some have more changes than a group.
        const text = 'x'.repeat(at % 9 === 0 ? 100 : (at * 5) % 13)
        const names = from(
          at * submissionChangesMax,
          [1, 1, 2, 1, submissionChangesMax][at % 5] as number,
        )
        const changes = names.map((name): Change => ['notes.insert', `${name}`, text])
        const isTaken = drains.length === 0 && isRoomFor(changes)
        if (isTaken) {
          waiting.set(at, changes)
        }
        const note = (outcome: string) => {
          waiting.delete(at)
          if ((outcome === 'refused') === isTaken) {
            broken.push(`${at} is ${outcome}`)
          }
          outcomes.push({
            at,
            outcome: outcome === expected(`${names[0]}`) ? 'right' : outcome,
          })
        }
        queue.submit(changes).then(
          rows => note(`${rows}` === `${names}` ? 'committed' : `of changes ${rows}`),
          (error: Error & { code?: string }) =>
            note(error.code === undefined ? 'failed' : 'refused'),
        )
      }
      for (const each of steps) {
        if (each === 'submit') {
          submit()
        } else if (each === 'turn') {
          await setImmediate()
        } else if (each === 'drain') {
          drains.push(queue.drain().then(() => queue.pending()))
        } else if (scheduler.count() > 0) {
          ends = each === 'commit' ? 'committed' : 'failed'
          await scheduler.waitOne()
        }
        await new Promise(process.nextTick)
      }
      ends = 'committed'
      for (let idle = 0; outcomes.length < submitted && idle < idleTurnsMax; idle++) {
        await setImmediate()
        if (scheduler.count() === 0) {
          continue
        }
        await scheduler.waitOne()
        idle = 0
      }

      const settled = outcomes.toSorted((a, b) => a.at - b.at)
      expect(settled).toEqual(from(0, submitted).map(at => ({ at, outcome: 'right' })))
      expect(begun).toEqual(begun.toSorted((a, b) => Number(a) - Number(b)))
      expect(broken).toEqual([])
      expect(queue.pending()).toBe(0)
      expect(await Promise.all([queue.drain(), ...drains])).toEqual([
        undefined,
        ...drains.map(() => 0),
      ])
    },
  )
  await fc.assert(property, { numRuns: 500 })
})

test('changes of the two turns after a transaction share the next one, and a change that finds none under way begins at once', async () => {
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
  const submit = (name: string) => queue.submit([['notes.insert', name]])
  const first = submit('a')
  await setImmediate()
  const second = submit('b')
  await setImmediate()
  ends[0]?.()
  await first
  await new Promise(process.nextTick)
  submit('c')
  await setImmediate()
  const third = submit('d')
  expect(begun).toEqual([['a']])
  await setImmediate()
  expect(begun).toEqual([['a'], ['b', 'c', 'd']])
  ends[1]?.()
  await Promise.all([second, third])
  await new Promise(process.nextTick)
  submit('e')
  await setImmediate()
  expect(begun[2]).toEqual(['e'])
})

const from = (first: number, count: number) =>
  Array.from({ length: count }, (_, n) => first + n)
const sum = (numbers: readonly number[]) =>
  numbers.reduce((total, each) => total + each, 0)
const textOf = (changes: readonly Change[]) =>
  sum(changes.flat().map(part => `${part}`.length))
const submissionOf = (name: string) => Math.floor(Number(name) / submissionChangesMax)
const nameOf = ([, name]: Change) => `${name}`
