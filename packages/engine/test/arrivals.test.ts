import { MessageChannel } from 'node:worker_threads'
import type { Change } from '@plant-store/engine'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Arrivals, type ChangeKind, type Group } from '../src/sqlite/arrivals.ts'

/** Opens the two ports by which a thread sends its changes. */
function openSenders() {
  const arrivals = new Arrivals()
  const open = (kind: ChangeKind) => {
    const { port1: portOfThread, port2: portOfWriter } = new MessageChannel()
    onTestFinished(() => portOfThread.close())
    arrivals.senders.set(portOfWriter, kind)
    return {
      /** Sends a group, which stays in the port until a transaction receives it. */
      send: (name: string, changes = 1) =>
        portOfThread.postMessage(groupOf(name, changes)),
      /** Adds a group as the event does that begins a transaction. */
      deliver: (name: string, changes = 1) =>
        arrivals.add(portOfWriter, groupOf(name, changes)),
    }
  }

  /** Takes groups as a transaction does, and returns their names. */
  const run = (onTaken: (name: unknown) => void = () => {}) => {
    const names: unknown[] = []
    arrivals.begin()
    for (let group = arrivals.next(); group !== undefined; group = arrivals.next()) {
      const name = nameOf(group)
      names.push(name)
      onTaken(name)
    }
    return names
  }
  return { bulk: open('bulk'), single: open('single'), arrivals, run }
}

const nameOf = ({ changes }: Pick<Group, 'changes'>) => changes[0]?.[1]
const groupOf = (name: string, changes = 1): Change[] =>
  Array.from({ length: changes }, () => ['notes.remove', name])

test('a transaction takes what waits and what arrives during its statements', () => {
  const { single, run } = openSenders()
  single.deliver('first')
  single.send('waits')

  const names = run(name => {
    if (name === 'first') {
      single.send('arrives during the first statement')
    }
    if (name === 'arrives during the first statement') {
      single.send('arrives during the last statement')
    }
  })

  expect(names).toEqual([
    'first',
    'waits',
    'arrives during the first statement',
    'arrives during the last statement',
  ])
})

test('a group that arrives during COMMIT waits for the next transaction', () => {
  const { single, run } = openSenders()
  single.deliver('first')
  run()
  single.send('arrives during COMMIT')

  single.deliver('begins the next one')

  expect(run()).toEqual(['begins the next one', 'arrives during COMMIT'])
})

test('a transaction that cannot begin gives back what it had received', () => {
  const { bulk, single, arrivals } = openSenders()
  single.deliver('first')
  bulk.send('bulk')
  arrivals.begin()
  // Node delivers this one later, and begins another transaction with it.
  single.send('arrives later')

  const groups = arrivals.takeFailedAndWaiting()

  expect(groups.map(nameOf)).toEqual(['first', 'bulk'])
  expect(arrivals.hasWaiting()).toBe(false)
})

test('single changes overtake bulk ones, of which one group follows', () => {
  const { bulk, single, run } = openSenders()
  bulk.deliver('bulk 1')
  bulk.send('bulk 2')
  single.send('single 1')
  single.send('single 2')

  expect(run()).toEqual(['single 1', 'single 2', 'bulk 1'])
})

test('a transaction full of single changes still takes bulk ones', () => {
  const { bulk, single, run } = openSenders()
  // With 1,000 single changes it is full.
  single.deliver('first', 999)
  single.send('last')
  single.send('too late')
  bulk.send('bulk')

  expect(run()).toEqual(['first', 'last', 'bulk'])
  expect(run()).toEqual(['too late'])
})

test('changes are recent after a transaction that took long', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { bulk, arrivals, run } = openSenders()
  bulk.send('bulk')

  run(() => {
    vi.advanceTimersByTime(5_000)
  })
  arrivals.end()

  expect(arrivals.recent()).toEqual({ single: false, bulk: true })
  vi.advanceTimersByTime(1_001)
  expect(arrivals.recent()).toEqual({ single: false, bulk: false })
})

test('a transaction takes 8,000 bulk changes, or a group beside single ones', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { bulk, single, arrivals, run } = openSenders()
  const sendBulk = (groups: number) => {
    for (let sent = 0; sent < groups; sent++) {
      bulk.send('bulk', 100)
    }
  }

  sendBulk(81)
  expect(run(), 'without single changes').toHaveLength(80)
  expect(arrivals.recent()).toEqual({ single: false, bulk: true })

  single.deliver('single')
  sendBulk(2)
  expect(run(), 'with a single change').toEqual(['single', 'bulk'])
  expect(arrivals.recent()).toEqual({ single: true, bulk: true })

  vi.advanceTimersByTime(1_000)
  expect(run(), 'a second later').toEqual(['bulk'])

  vi.advanceTimersByTime(1)
  // One of the 81 + 2 groups still waits.
  sendBulk(2)
  expect(run(), 'more than a second later').toEqual(['bulk', 'bulk', 'bulk'])
  expect(arrivals.recent()).toEqual({ single: false, bulk: true })
})

test('beside single changes, bulk ones take as long as the last COMMIT', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { bulk, single, arrivals, run } = openSenders()
  single.deliver('single')
  run()
  const commitMs = 400
  vi.advanceTimersByTime(commitMs)
  arrivals.end()
  for (let sent = 0; sent < 10; sent++) {
    bulk.send('bulk')
  }

  const names = run(() => {
    vi.advanceTimersByTime(100)
  })

  expect(names).toHaveLength(4)
})
