import { setImmediate } from 'node:timers/promises'
import type { Change } from '@plant-store/engine'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createGroupQueue } from '../src/group-queue.ts'

const groupChangesMax = 3
const fewChanges = { queueChangesMax: 4, queueTextCharsMax: 1_000, groupChangesMax }
const littleText = { queueChangesMax: 20, queueTextCharsMax: 75, groupChangesMax }
/** More turns of the event loop than a change waits for that no transaction keeps. */
const idleTurnsMax = 10

const step = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('submit', 'submit', 'turn', 'commit', 'fail') },
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
      const outcomes: { name: string; outcome: string }[] = []
      const waiting = new Map<string, number>()
      const broken: string[] = []
      let underWay = 0
      let ends: 'committed' | 'failed' = 'committed'
      const queue = createGroupQueue({
        groupsMax,
        limits,
        async runGroup(group) {
          underWay++
          if (underWay > groupsMax) broken.push(`${underWay} transactions at once`)
          if (group.length > groupChangesMax) broken.push(`${group.length} changes in one`)
          begun.push(...group.map(nameOf))
          await scheduler.schedule(Promise.resolve())
          underWay--
          for (const change of group) ended.set(nameOf(change), ends)
          if (ends === 'failed') throw new Error('failed')
          return group.map(change => Number(nameOf(change)))
        },
      })

      const submitted: string[] = []
      const drains: Promise<number>[] = []
      const expected = (name: string) => (begun.includes(name) ? ended.get(name) : 'refused')
      const isRoomFor = (text: number) =>
        waiting.size === 0 ||
        (waiting.size < limits.queueChangesMax && text + sum(waiting.values()) <= limits.queueTextCharsMax)
      const submit = () => {
        const at = submitted.length
        const name = `${at}`
        submitted.push(name)
        // Some are longer than all that may wait together.
        const change: Change = ['notes.insert', name, 'x'.repeat(at % 9 === 0 ? 100 : (at * 5) % 13)]
        const text = change.join('').length
        const isTaken = drains.length === 0 && isRoomFor(text)
        if (isTaken) waiting.set(name, text)
        const note = (outcome: string) => {
          waiting.delete(name)
          if ((outcome === 'refused') === isTaken) broken.push(`${name} is ${outcome}`)
          outcomes.push({ name, outcome: outcome === expected(name) ? 'right' : outcome })
        }
        queue.submit([change]).then(
          ([rows]) => note(rows === Number(name) ? 'committed' : `of change ${rows}`),
          (error: Error & { code?: string }) => note(error.code === undefined ? 'failed' : 'refused'),
        )
      }
      for (const each of steps) {
        if (each === 'submit') submit()
        else if (each === 'turn') await setImmediate()
        else if (each === 'drain') drains.push(queue.drain().then(() => queue.pending()))
        else if (scheduler.count() > 0) {
          ends = each === 'commit' ? 'committed' : 'failed'
          await scheduler.waitOne()
        }
        await new Promise(process.nextTick)
      }
      ends = 'committed'
      for (let idle = 0; outcomes.length < submitted.length && idle < idleTurnsMax; idle++) {
        await setImmediate()
        if (scheduler.count() === 0) continue
        await scheduler.waitOne()
        idle = 0
      }

      const settled = outcomes.toSorted((a, b) => Number(a.name) - Number(b.name))
      expect(settled).toEqual(submitted.map(name => ({ name, outcome: 'right' })))
      expect(begun).toEqual(begun.toSorted((a, b) => Number(a) - Number(b)))
      expect(broken).toEqual([])
      expect(queue.pending()).toBe(0)
      expect(await Promise.all([queue.drain(), ...drains])).toEqual([undefined, ...drains.map(() => 0)])
    },
  )
  await fc.assert(property, { numRuns: 2_000 })
})

test('changes of the two turns after a transaction share the next one, and a change that finds none under way begins at once', async () => {
  const ends: (() => void)[] = []
  const begun: string[][] = []
  const queue = createGroupQueue({
    groupsMax: 1,
    limits: littleText,
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

const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, each) => total + each, 0)
const nameOf = ([, name]: Change) => `${name}`
