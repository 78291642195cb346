import { createTestDatabase } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { note, openStorage } from './notes.ts'

test('two storages that change the same rows of two entities in opposite orders do not wait for each other', async () => {
  await using database = await createTestDatabase()
  const ids = Array.from({ length: 100 }, (_, n) => n)
  {
    await using first = await openStorage({ url: database.url })
    await using second = await openStorage({ url: database.url })
    const orders = [
      { storage: first, order: ids, tables: ['notes', 'gardens'] },
      { storage: second, order: ids.toReversed(), tables: ['gardens', 'notes'] },
    ] as const
    for (let round = 0; round < 3; round++) {
      const changes = orders.flatMap(({ order, tables, storage }) =>
        order.flatMap(id =>
          tables.flatMap(table => {
            const { insert, save, remove } = storage[table]
            const each = note(id, `of storage ${tables[0]}`)
            if ((id + round) % 10 === 0) {
              return remove(each.id)
            }
            return id % 3 === 0
              ? [insert(each), save(each)]
              : (id + round) % 2 === 0
                ? insert(each)
                : save(each)
          }),
        ),
      )
      await Promise.all<unknown>(changes)
    }
  }
  // A connection tells the server what it counted at its end.
  const others =
    'select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
  await expect.poll(() => database.query(others)).toEqual([])
  const counted = `
    select deadlocks::int from pg_stat_database where datname = current_database()`
  expect(await database.query(counted)).toEqual([{ deadlocks: 0 }])
})
