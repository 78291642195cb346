import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
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
