import { EventEmitter, once } from 'node:events'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Change, Commit } from '@plant-store/engine'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { WriterAnswer } from '../src/sqlite/writer.ts'
import { connectToWriter } from '../src/sqlite/writer-client.ts'

interface Waiting {
  readonly names: readonly number[]
  /** Of the thread whose group it is. */
  readonly thread: number
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ thread: fc.nat(1), changes: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ takes: fc.integer({ min: 1, max: 4 }), fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.constantFrom('outage', 'recovery') },
)

test('each group is settled once and with its own rows, whatever shares a transaction, fails or breaks down', async () => {
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(step, { maxLength: 40, size: 'max' }),
    async (scheduler, steps) => {
      const commits: number[] = []
      const ends: string[] = []
      let waiting: Waiting[] = []
      const ports = [0, 1].map(thread => {
        const postMessage = (group: readonly Change[]) =>
          void waiting.push({ thread, names: group.map(([, name]) => Number(name)) })
        return Object.assign(new EventEmitter(), { postMessage })
      })
      const writers = ports.map(port =>
        connectToWriter(port as unknown as MessagePort, { onCommit: ({ changes }) => commits.push(changes) }),
      )
      const outages: (string | undefined)[] = []
      /** Messages to one port arrive in order, and to several in any. */
      const arrivals = ports.map(() => Promise.resolve())
      const tell = (thread: number, answer: WriterAnswer) => {
        const before = arrivals[thread] as Promise<void>
        const arrive = async () => {
          await before
          await scheduler.schedule(Promise.resolve())
          ports[thread]?.emit('message', answer)
          if ('blockedBecause' in answer) outages[thread] = answer.blockedBecause
        }
        arrivals[thread] = arrive()
      }
      /** What becomes of each change; a group that is refused never reaches the writer. */
      const expected = new Map<number, string>()
      const shared: number[] = []
      const settled: Promise<void>[] = []
      let count = 0

      for (const each of steps) {
        if (each === 'outage' || each === 'recovery') {
          for (const thread of ports.keys())
            tell(thread, { blockedBecause: each === 'outage' ? 'the disk fails' : undefined })
        } else if ('thread' in each) {
          const names = Array.from({ length: each.changes }, () => count++)
          const writer = writers[each.thread] as (typeof writers)[number]
          const outage = outages[each.thread]
          expect(writer.blockedBecause()).toBe(outage)
          if (outage !== undefined) for (const name of names) expected.set(name, outage)
          const reached = waiting.length + (outage === undefined ? 1 : 0)
          const group = names.map((name): Change => ['notes.insert', `${name}`])
          settled.push(
            writer.send(group).then(
              rows => void ends.push(...names.map((name, at) => `${name}: ${rows[at]} of ${rows.length}`)),
              ({ cause }) => void ends.push(...names.map(name => `${name}: ${cause.message}`)),
            ),
          )
          expect(waiting).toHaveLength(reached)
        } else {
          const taken = waiting.slice(0, each.takes)
          waiting = waiting.slice(each.takes)
          let commit = { changes: taken.flatMap(({ names }) => names).length, ms: 0 } as Commit | undefined
          for (const { thread, names } of taken) {
            if (each.fails) tell(thread, { reason: 'the disk is full' })
            else tell(thread, { affectedRows: names, ...(commit && { commit }) })
            if (!each.fails && commit) shared.push(commit.changes)
            commit = undefined
            for (const name of names)
              expected.set(name, each.fails ? 'the disk is full' : `${name} of ${names.length}`)
          }
        }
        await new Promise(process.nextTick)
        if (scheduler.count() > 0) await scheduler.waitOne()
        await new Promise(process.nextTick)
      }
      await scheduler.waitIdle()
      await Promise.all(arrivals)
      expect(waiting.flatMap(({ names }) => names).length + expected.size).toBe(count)
      await new Promise(process.nextTick)
      const right = [...expected].map(([name, end]) => `${name}: ${end}`)
      expect(ends.toSorted()).toEqual(right.toSorted())
      expect(commits.toSorted()).toEqual(shared.toSorted())
    },
  )
  await fc.assert(property, { numRuns: 200 })
})

test('a change during an outage is refused with its reason, and closing ends the port, so that a thread can end', async () => {
  const { port1: port, port2: far } = new MessageChannel()
  const writer = connectToWriter(port)
  far.postMessage({ blockedBecause: 'the disk fails' } satisfies WriterAnswer)
  await once(port, 'message')
  await expect(writer.send([])).rejects.toMatchObject({
    message: 'the store could not write the change',
    cause: { message: 'the disk fails' },
  })
  const closed = once(far, 'close')
  writer.close()
  await closed
})
