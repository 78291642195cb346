import assert from 'node:assert/strict'
import type { UnicodeText } from '@plant-store/domain'
import { createRandom } from '@plant-store/harness/random'
import { createTestSchema } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { describe, expect, test } from 'vitest'
import { plant } from './places.ts'

function tagOf(text: string): UnicodeText {
  const { tag } = plant(0, 'any', text)
  assert(tag !== undefined, 'the plant has a tag')
  return tag
}

describe('the plants of a tag', () => {
  /** An entry of an index has at most 2,704 bytes. */
  function createLongText(): string {
    const { below } = createRandom(1)
    const characters = Array.from({ length: 50_000 }, () =>
      String.fromCodePoint(0x4e00 + below(20_000)),
    )
    return characters.join('')
  }

  test('are found if tags are too long for an index, and differ at the end', async () => {
    await using schema = await createTestSchema()
    await using storage = await openStorage({ url: schema.url })
    const long = createLongText()
    await storage.plants.insert(plant(1, 'a', `${long}a`))
    await storage.plants.insert(plant(2, 'b', `${long}b`))
    await storage.plants.save(plant(3, 'b', `${long}b`))

    const found = await storage.plants.page({ limit: 10, tag: tagOf(`${long}b`) })

    expect(found.map(({ id }) => id)).toEqual([2n, 3n])
  })

  test('are found by an index', async () => {
    await using own = await createTestSchema()
    const sizes: number[] = []
    {
      await using ownStorage = await openStorage({ url: own.url })
      await own.query(`
        insert into plants
        select n, 'plant', 'tag ' || n % 200 from generate_series(1, 10000) as n;
        analyze plants`)
      // The server plans the first five times for the value, and then perhaps for any.
      for (let times = 0; times < 10; times++) {
        const page = await ownStorage.plants.page({ limit: 100, tag: tagOf('tag 7') })
        sizes.push(page.length)
      }
    }

    expect(sizes).toEqual(Array(10).fill(50))
    const rowsRead = `select idx_tup_read::int as count from pg_stat_user_indexes
      where indexrelname = 'plants_by_tag' and schemaname = current_schema()`
    await expect.poll(() => own.query(rowsRead)).toEqual([{ count: 500 }])
  })
})
