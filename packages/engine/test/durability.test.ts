import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder, traceOrSkip } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { type Notes, note, notesFrom, openStorage } from './notes.ts'
import { databases, makePlace, newFile } from './places.ts'

/** A call that another thread interrupts is two lines; the second one says `resumed`. */
const countSyncs = (calls: readonly string[]) =>
  calls.filter(line => /\bf(data)?sync\(/.test(line)).length
const countInjected = (calls: readonly string[]) =>
  calls.filter(line => line.includes('(INJECTED)')).length

/** Inserts notes at once, and returns the outcome of each. */
function insertAtOnce(
  notes: Notes,
  firstId: number,
  count: number,
): Promise<readonly unknown[]> {
  const insert = (id: bigint) => notes.insert(note(id)).catch(({ code }) => code)
  return Promise.all(notesFrom(firstId, count).map(({ id }) => insert(id)))
}

/** Returns the ids in a copy of the store as a killed server leaves it. */
async function idsAfterKill(file: string): Promise<readonly bigint[]> {
  const copy = newFile()
  for (const suffix of ['', '-wal']) {
    copyFileSync(file + suffix, copy + suffix)
  }
  await using storage = await openStorage({ url: `file:${copy}` })
  const notes = await storage.notes.page(1_000)
  return notes.map(({ id }) => id)
}

test.each(databases)('stores on %s race for an id, and one wins', async name => {
  const { url } = await makePlace(name)
  await using stack = new AsyncDisposableStack()
  const open = async () => stack.use(await openStorage({ url }))
  // They also race for who creates the store.
  const stores = await Promise.all([open(), open(), open(), open()])
  const all = notesFrom(1, 100)

  // Half of them have another order, so that they lock the same rows in different orders.
  const inserting = stores.map(({ notes }, number) => {
    const ordered = number % 2 === 0 ? all : all.toReversed()
    const ours = ordered.map(({ id }) => note(id, `of ${number}`))
    return Promise.all(ours.map(async each => ((await notes.insert(each)) ? [each] : [])))
  })
  const winners = (await Promise.all(inserting)).flat(2)

  const byId = winners.toSorted((a, b) => Number(a.id - b.id))
  expect(byId.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
  for (const [number, { notes }] of stores.entries()) {
    expect(await notes.page(1_000), `as ${number} sees it`).toEqual(byId)
  }
})

test('each change alone is fsynced, and changes that come together share', async context => {
  await using storage = await openStorage({ url: `file:${newFile()}` })
  const alone = await traceOrSkip(context)

  for (const each of notesFrom(1, 30)) {
    await storage.notes.insert(each)
  }
  const syncsAlone = countSyncs(await alone.detach())
  const together = await traceOrSkip(context)
  await insertAtOnce(storage.notes, 1_000, 256)
  const syncsTogether = countSyncs(await together.detach())

  expect(syncsAlone).toBeGreaterThanOrEqual(30)
  expect(syncsTogether).toBeGreaterThanOrEqual(1)
  expect(syncsTogether).toBeLessThan(64)
})

test('the new folders of a store are on the disk, each in the one above', async context => {
  const folder = temporaryFolder()
  const tracer = await traceOrSkip(context)

  await using _ = await openStorage({ url: `file:${join(folder, 'a/b/notes.db')}` })

  const calls = await tracer.detach()
  const syncedPaths = calls.map(call => /fsync\(\d+<([^>]*)>/.exec(call)?.[1])
  expect(syncedPaths).toEqual(expect.arrayContaining([folder, join(folder, 'a')]))
})

test('a store is not made on a full disk, and is made once it has room', async context => {
  const url = `file:${newFile()}`
  const tracer = await traceOrSkip(context, 'pwrite64:error=ENOSPC')

  const refused = openStorage({ url })

  await expect(refused).rejects.toThrow(
    /^the store .* cannot be opened: the disk is full$/,
  )
  await tracer.detach()
  await using storage = await openStorage({ url })
  expect(await storage.notes.insert(note(1))).toBe(true)
})

describe('changes that a disk refuses are not kept', () => {
  test.for([
    { disk: 'that fails an fsync', fault: 'fsync,fdatasync:error=EIO:when=1' },
    { disk: 'that is full', fault: 'pwrite64:error=ENOSPC:when=1' },
  ])('by a disk $disk', async ({ fault }, context) => {
    const file = newFile()
    await using storage = await openStorage({ url: `file:${file}` })
    await insertAtOnce(storage.notes, 1, 3)
    const tracer = await traceOrSkip(context, fault)

    const refused = await insertAtOnce(storage.notes, 100, 3)
    const next = await insertAtOnce(storage.notes, 4, 3)

    expect(refused).toEqual(Array(3).fill('store-unavailable'))
    expect(next).toEqual(Array(3).fill(true))
    expect(countInjected(await tracer.detach())).toBe(1)
    expect(await idsAfterKill(file)).toEqual(notesFrom(1, 6).map(({ id }) => id))
  })

  test('while it fails, when the store is an outage and can be closed', async context => {
    const file = newFile()
    await using storage = await openStorage({ url: `file:${file}` })
    await using second = await openStorage({ url: `file:${newFile()}` })
    await storage.notes.insert(note(1))
    const tracer = await traceOrSkip(context, 'fsync,fdatasync:error=EIO')
    const unavailable = { code: 'store-unavailable' }

    await expect(storage.notes.insert(note(100))).rejects.toMatchObject(unavailable)
    await expect(storage.notes.insert(note(101))).rejects.toMatchObject(unavailable)
    await expect(storage.check()).rejects.toMatchObject(unavailable)
    expect(await storage.notes.page(10)).toHaveLength(1)
    await expect(second.notes.insert(note(1))).rejects.toMatchObject(unavailable)
    await second[Symbol.asyncDispose]()

    await tracer.detach()
    await expect
      .poll(() => storage.notes.insert(note(200)).catch(({ code }) => code))
      .toBe(true)
    expect(await idsAfterKill(file)).toEqual([1n, 200n])
  })
})
