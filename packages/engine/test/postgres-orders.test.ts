import type { TestDatabase } from '@plant-store/harness/postgres'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { type Note, type Notes, note, openStorage } from './notes.ts'

const rounds = 3
const ids = Array.from({ length: 100 }, (_, id) => id)

test('storages that change the same rows in opposite orders never deadlock', async () => {
  await using database = await createTestDatabase()

  await changeInOppositeOrders(database.url)

  expect(await countDeadlocks(database)).toBe(0)
})

/**
 * Changes the same rows of two entities on two storages, which begin at opposite ends.
 */
async function changeInOppositeOrders(url: string): Promise<void> {
  await using first = await openStorage({ url })
  await using second = await openStorage({ url })
  for (let round = 0; round < rounds; round++) {
    const forward = ids.flatMap(id => [
      ...changesOf(first.notes, id, round),
      ...changesOf(first.gardens, id, round),
    ])
    const backward = ids
      .toReversed()
      .flatMap(id => [
        ...changesOf(second.gardens, id, round),
        ...changesOf(second.notes, id, round),
      ])
    await Promise.all([...forward, ...backward])
  }
}

/** Changes a row in a way that depends on its id and on the round. */
function changesOf(notes: Notes, id: number, round: number): readonly Promise<unknown>[] {
  const changed: Note = note(id, `round ${round}`)
  if ((id + round) % 10 === 0) {
    return [notes.remove(changed.id)]
  }
  if (id % 3 === 0) {
    return [notes.insert(changed), notes.save(changed)]
  }
  if ((id + round) % 2 === 0) {
    return [notes.insert(changed)]
  }
  return [notes.save(changed)]
}

async function countDeadlocks(database: TestDatabase): Promise<unknown> {
  // A connection reports what it counted when it ends.
  const others = `select 1 from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`
  await expect.poll(() => database.query(others)).toEqual([])
  const [row] = await database.query(
    'select deadlocks::int from pg_stat_database where datname = current_database()',
  )
  return row?.['deadlocks']
}
