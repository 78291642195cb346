import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Change } from '@plant-store/engine'
import { onTestFinished, test, vi } from 'vitest'
import { type ChangeKind, createArrivals, type Group } from '../src/sqlite/arrivals.ts'

/** Returns the arrivals from both senders of one thread. */
function openSenders() {
  const senders = new Map<MessagePort, ChangeKind>()
  const open = (kind: ChangeKind) => {
    const { port1: far, port2: near } = new MessageChannel()
    onTestFinished(() => far.close())
    senders.set(near, kind)
    return {
      near,
      send: (name: string, changes = 1) => far.postMessage(groupOf(name, changes)),
    }
  }
  const [bulk, single] = [open('bulk'), open('single')]
  const arrivals = createArrivals(senders)
  const begin = (sender: MessagePort, changes: readonly Change[]) =>
    arrivals.begin([arrivals.toGroup(sender, changes)])
  /** Goes through the groups as a transaction does, and returns their names. */
  const run = (groups: Group[], meanwhile: (name: unknown) => void = () => {}) => {
    const names: unknown[] = []
    for (let at = 0; at < groups.length || arrivals.addNext(groups); at++) {
      const name = groups[at]?.changes[0]?.[1]
      names.push(name)
      meanwhile(name)
    }
    return names
  }
  return { bulk, single, arrivals, begin, run }
}

const groupOf = (name: string, changes = 1): Change[] =>
  Array.from({ length: changes }, () => ['notes.remove', name])

test('a transaction takes what waits when it begins and what arrives during its statements', ({
  expect,
}) => {
  const { single, begin, run } = openSenders()
  single.send('waits')
  const groups = begin(single.near, groupOf('first'))
  // Without a single step of the transaction: if it cannot begin, these fail with it.
  expect(groups).toHaveLength(2)
  single.send('arrives before')
  const names = run(groups, name => {
    if (name === 'arrives before') {
      single.send('arrives during the last statement')
    }
  })
  expect(names).toEqual([
    'first',
    'waits',
    'arrives before',
    'arrives during the last statement',
  ])
  single.send('arrives during COMMIT')
  expect(groups).toHaveLength(4)
  expect(run(begin(single.near, groupOf('next')))).toEqual([
    'next',
    'arrives during COMMIT',
  ])
})

test('single changes overtake bulk ones', ({ expect }) => {
  const { bulk, single, begin, run } = openSenders()
  for (const name of ['bulk 2', 'bulk 3']) {
    bulk.send(name)
  }
  for (const name of ['single 1', 'single 2']) {
    single.send(name)
  }
  expect(run(begin(bulk.near, groupOf('bulk 1')))).toEqual([
    'single 1',
    'single 2',
    'bulk 1',
  ])
})

test('a full transaction takes no further single changes, and still bulk ones', ({
  expect,
}) => {
  const { bulk, single, begin, run } = openSenders()
  single.send('last')
  single.send('too late')
  bulk.send('bulk')
  const groups = begin(single.near, groupOf('first', 999))
  expect(run(groups)).toEqual(['first', 'last', 'bulk'])
})

test('within a second of a single change a transaction takes one bulk group, and otherwise 8,000 changes', ({
  expect,
}) => {
  let now = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  const { bulk, single, arrivals, begin, run } = openSenders()
  const takenWith = (port: MessagePort) => {
    for (let sent = 0; sent < 100; sent++) {
      bulk.send('bulk', 100)
    }
    const groups = begin(port, groupOf('first', 100))
    run(groups)
    return {
      rows: groups.flatMap(({ changes }) => changes).length,
      recent: arrivals.recent(),
    }
  }
  const { near } = bulk
  const both = { single: true, bulk: true }
  expect(takenWith(near)).toEqual({ rows: 8_000, recent: { single: false, bulk: true } })
  expect(takenWith(single.near)).toEqual({ rows: 200, recent: both })
  now += 1_000
  expect(takenWith(near)).toEqual({ rows: 100, recent: both })
  now += 1
  expect(takenWith(near)).toEqual({ rows: 8_000, recent: { single: false, bulk: true } })
  now += 1_001
  expect(run(begin(single.near, []))).toEqual([undefined, 'bulk'])
})
