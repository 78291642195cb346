import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import {
  inspectStore,
  int64Min,
  note,
  notesFrom,
  openReader,
  openStorage,
} from './notes.ts'
import { databases, itemsOf, makePlace, newFile } from './places.ts'

describe.each(databases)('a reader on %s', name => {
  test('has every id and text, in numeric order, a few at a time', async () => {
    const { url } = await makePlace(name)
    const int64Max = -1n - int64Min
    const ids = [
      ...notesFrom(0, 1_500).map(({ id }) => int64Min + id),
      ...notesFrom(-50, 100).map(({ id }) => id),
      ...notesFrom(0, 1_500).map(({ id }) => int64Max - 1_499n + id),
    ]
    const notes = ids.map((id, n) => note(id, `ö 🌱 ${n}`, n % 3 === 0 ? null : `${n}`))
    await using storage = await openStorage({ url })
    await storage.notes.insertAll(notes.toReversed())
    await using reader = await openReader(url)
    const others = vi.fn()
    setImmediate(others)

    const sizes: number[] = []
    const read = []
    for await (const page of reader.all('notes')) {
      sizes.push(page.length)
      read.push(...page)
    }

    expect(read).toEqual(notes)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(2_000)
    expect(others, 'others act between two pages').toHaveBeenCalled()
    expect(reader.schemaVersion).toBe(1)
    expect(await reader.counts()).toEqual({ notes: notes.length, gardens: 0 })
    expect(await itemsOf(reader.all('gardens'))).toEqual([])
  })

  test('sees one moment, whatever is changed meanwhile', async () => {
    const { url } = await makePlace(name)
    await using storage = await openStorage({ url })
    await storage.notes.insertAll(notesFrom(0, 2_500))
    await using reader = await openReader(url)
    await storage.notes.remove(0n)

    const read = []
    for await (const page of reader.all('notes')) {
      const isFirstPage = read.length === 0
      if (isFirstPage) {
        await storage.notes.insert(note(10_000))
        await storage.notes.save(note(2_499, 'after'))
      }
      read.push(...page)
    }

    expect(read).toEqual(notesFrom(0, 2_500))
    expect(await reader.counts()).toMatchObject({ notes: 2_500 })
    await using later = await openReader(url)
    const last = (await itemsOf(later.all('notes'))).slice(-2)
    expect(last).toEqual([note(2_499, 'after'), note(10_000)])
  })

  test('is refused by an empty database, which stays so', async () => {
    const place = await makePlace(name)
    await place.run(name === 'SQLite' ? 'pragma user_version = 1' : 'select 1')
    const before = await place.fingerprint()

    const refusal = /cannot be opened: it is empty$/
    await expect(openReader(place.url)).rejects.toThrow(refusal)
    await expect(inspectStore(place.url)).rejects.toThrow(refusal)
    expect(await place.fingerprint()).toBe(before)
  })
})

test('a reader that meets damage says so', async () => {
  const file = newFile()
  const url = `file:${file}`
  {
    await using storage = await openStorage({ url })
    await storage.notes.insertAll(notesFrom(0, 5_000))
  }
  await using reader = await openReader(url)
  const pages = reader.all('notes')[Symbol.asyncIterator]()
  await pages.next()
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.fill(0xff, bytes.length / 4))

  await expect(pages.next()).rejects.toMatchObject({
    code: 'store-unavailable',
    message: 'the store cannot be read: it is damaged',
  })
})
