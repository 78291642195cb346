import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { attachStorage, note, notesFrom, openStorage } from './notes.ts'

const newFile = () => join(temporaryFolder(), 'notes.db')

test('leaving a store writes what waits, and leaves it open for others', async () => {
  await using storage = await openStorage({ url: `file:${newFile()}` })
  await using other = await attachStorage(storage.share())
  const ports = () =>
    process.getActiveResourcesInfo().filter(each => each === 'MessagePort').length
  const before = ports()
  const leaving = await attachStorage(storage.share())
  expect(ports()).toBeGreaterThan(before)
  const last = Promise.all(notesFrom(0, 50).map(leaving.notes.insert))
  await leaving[Symbol.asyncDispose]()
  expect(await last).toEqual(Array(50).fill(true))
  await expect.poll(ports).toBe(before)
  expect(await other.notes.insert(note(51))).toBe(true)
  expect(await storage.notes.insert(note(52))).toBe(true)
  expect((await storage.notes.page(100)).length).toBe(52)
})

test('a store is closed whole while others still have an end of it', async () => {
  const file = newFile()
  const storage = await openStorage({ url: `file:${file}` })
  storage.share()
  await storage.notes.insert(note(1))
  await storage[Symbol.asyncDispose]()
  expect(readdirSync(dirname(file))).toEqual(['notes.db'])
})

test('a single note overtakes many, of which its transaction takes one call', async () => {
  const file = newFile()
  const commits: number[] = []
  await using storage = await openStorage({
    url: `file:${file}`,
    onCommit: ({ changes }) => commits.push(changes),
  })
  // Keeps the store locked, so that they gather.
  const another = new Database(file).exec('begin immediate')
  const insertAll = (from: number) => storage.notes.insertAll(notesFrom(from, 500))
  const sent: Promise<unknown>[] = []
  for (const from of [0, 500, 1_000]) {
    sent.push(insertAll(from))
    await nextTurn()
    await nextTurn()
  }
  sent.push(storage.notes.insert(note(-1)))
  await nextTurn()
  await nextTurn()
  another.close()
  await Promise.all(sent)
  expect(commits[0]).toBe(501)
})
