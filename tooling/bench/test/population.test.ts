import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { bodyOf, countPlants, fill, idOf } from '../src/population.ts'

test.each([52, 63] as const)('ids of %i bits are spread, and none comes twice', idBits => {
  const ids = Array.from({ length: 20_000 }, (_, ordinal) => idOf(ordinal, { seed: 42, idBits }))
  expect(new Set(ids).size).toBe(ids.length)
  const most = 2n ** BigInt(idBits)
  const upperHalf = ids.filter(id => id >= most / 2n).length
  expect(ids.every(id => id >= 0n && id < most)).toBe(true)
  expect(upperHalf).toBeGreaterThan(9_000)
  expect(upperHalf).toBeLessThan(11_000)
})

test('a seed decides the ids', () => {
  expect(idOf(1, { seed: 1, idBits: 63 })).toBe(idOf(1, { seed: 1, idBits: 63 }))
  expect(idOf(1, { seed: 1, idBits: 63 })).not.toBe(idOf(1, { seed: 9, idBits: 63 }))
})

test('a body holds its id exactly', () => {
  const population = { seed: 1, idBits: 63 } as const
  expect(bodyOf(3, population)).toBe(`{"id":${idOf(3, population)},"name":"Plant 3","tag":"tag-3"}`)
  expect(bodyOf(17, population)).toBe(`{"id":${idOf(17, population)},"name":"Plant 17"}`)
})

test('a store is filled in the tables that it has', () => {
  using folder = temporaryFolder()
  const file = join(folder.path, 'plants.db')
  const db = new Database(file)
  db.pragma('journal_mode = wal')
  db.exec('create table plants (id integer primary key, name text not null, tag text) strict')
  db.close()
  fill(file, 2_000, { seed: 1, idBits: 63 })
  expect(countPlants(file)).toBe(2_000)

  const filled = new Database(file, { readonly: true })
  const tagged = filled.prepare<[string], number>('select count(*) from plants where tag is ?').pluck()
  expect(tagged.get('rare')).toBe(50)
  expect(tagged.get('common')).toBeGreaterThan(180)
  expect(filled.pragma('journal_mode', { simple: true })).toBe('wal')
  filled.close()
})
