import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MessageChannel } from 'node:worker_threads'
import { type Commit, type MainStorage, transferListOf } from '@plant-store/engine'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { attachStorage, type Entered, note, openStorage } from './notes.ts'

const open = () => openStorage({ url: `file:${join(temporaryFolder(), 'notes.db')}`, groupChangesMax: 3 })

const joined = (storage: MainStorage<Entered>) => attachStorage(storage.share())

test('groups that share a transaction that fails fail together, and the next one works', async () => {
  const file = join(temporaryFolder(), 'notes.db')
  const commits: number[] = []
  const onCommit = ({ changes }: Commit) => void commits.push(changes)
  await using storage = await openStorage({ url: `file:${file}`, onCommit })
  await using other = await attachStorage(storage.share(), { onCommit })
  const another = new Database(file)
  another.exec(
    "create trigger full before insert on notes when new.id = 6 begin select raise(abort, 'no more'); end; begin immediate",
  )
  const groups = []
  // While another program keeps the store locked, so that groups gather.
  for (const [end, ids] of [
    [storage, [1, 2]],
    [other, [3, 4]],
    [storage, [5, 6]],
  ] as const) {
    groups.push(Promise.allSettled(ids.map(id => end.notes.insert(note(id)))))
    await nextTurn()
  }
  another.close()
  const outcomes = await Promise.all(groups)
  const failed = outcomes.filter(ofGroup => ofGroup.some(({ status }) => status === 'rejected'))
  expect(failed.length).toBeGreaterThan(1)
  const refusal = { status: 'rejected', reason: { cause: { message: expect.stringContaining('no more') } } }
  for (const ofGroup of failed) expect(ofGroup).toMatchObject([refusal, refusal])
  expect(commits).toEqual(failed.length === 3 ? [] : [2 * (3 - failed.length)])
  expect(await other.notes.insert(note(7))).toBe(true)
})

test('leaving a store writes what still waits and leaves it open for the others', async () => {
  await using storage = await open()
  const one = await joined(storage)
  await using other = await joined(storage)
  const last = Promise.all(Array.from({ length: 50 }, (_, n) => one.notes.insert(note(n))))
  await one[Symbol.asyncDispose]()
  expect(await last).toEqual(Array(50).fill(true))
  await expect(one.notes.insert(note(50))).rejects.toMatchObject({ code: 'store-unavailable' })
  expect(await other.notes.insert(note(51))).toBe(true)
  expect(await storage.notes.insert(note(52))).toBe(true)
  expect((await storage.notes.page(100)).length).toBe(52)
})

test('a store is closed whole while others still have an end of it', async () => {
  const folder = temporaryFolder()
  const storage = await openStorage({ url: `file:${join(folder, 'notes.db')}` })
  storage.share()
  await storage.notes.insert(note(1))
  await storage[Symbol.asyncDispose]()
  expect(readdirSync(folder)).toEqual(['notes.db'])
})

test('a thread that is sent a store can write to it, with many notes too', async () => {
  const url = `file:${join(temporaryFolder(), 'notes.db')}`
  const observers = { onCommit() {}, onFailureChange() {}, onCheckpointFailure() {} }
  await using storage = await openStorage({ url, ...observers })
  const { port1: here, port2: there } = new MessageChannel()
  const shared = storage.share()
  here.postMessage(shared, transferListOf(shared))
  const [sent] = await once(there, 'message')
  here.close()
  await using other = await attachStorage(sent)
  expect(await other.notes.insert(note(1))).toBe(true)
  expect(await other.notes.insertAll([note(1), note(2)])).toEqual([false, true])
})

test('a thread that leaves a store holds no port to it', async () => {
  await using storage = await open()
  const ports = () => process.getActiveResourcesInfo().filter(each => each === 'MessagePort').length
  const before = ports()
  const other = await joined(storage)
  expect(ports()).toBeGreaterThan(before)
  await other[Symbol.asyncDispose]()
  await expect.poll(ports).toBe(before)
})

test('a single note overtakes many, which then come one call a transaction', async () => {
  const file = join(temporaryFolder(), 'notes.db')
  const commits: number[] = []
  const onCommit = ({ changes }: Commit) => void commits.push(changes)
  await using storage = await openStorage({ url: `file:${file}`, onCommit })
  await using other = await attachStorage(storage.share(), { onCommit })
  // Keeps the store locked, so that they gather.
  const another = new Database(file).exec('begin immediate')
  const sent: Promise<unknown>[] = []
  for (let n = 0; n < 4; n++) {
    for (const end of [storage, other]) {
      const from = 1_000 * sent.length
      sent.push(end.notes.insertAll(Array.from({ length: 500 }, (_, each) => note(from + each))))
    }
    if (n === 1) sent.push(other.notes.insert(note(-1)))
    await nextTurn()
    await nextTurn()
  }
  another.close()
  await Promise.all(sent)
  // Only the transaction that had begun is before its own.
  expect(commits.findIndex(changes => changes % 500 === 1)).toBeOneOf([0, 1])
  // Those that were sent after it cannot be before it.
  expect(commits.slice(-4)).toEqual([500, 500, 500, 500])
})
