import { startServer } from '@plant-store/harness'
import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import { createTestDatabase, needs } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { expect, inject, test } from 'vitest'

const ready = async ({ url }: { url: string }) => (await fetch(`${url}/readyz`)).status
const create = async ({ url }: { url: string }, id: number) => {
  const answer = await fetch(`${url}/plants`, {
    method: 'POST',
    headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
    body: JSON.stringify({ id, name: 'Monstera' }),
  })
  return answer.status
}

test('a server whose user may not write is not ready, until the user may', async () => {
  await using database = await createTestDatabase()
  await (await openStorage({ url: database.url }))[Symbol.asyncDispose]()
  await using reader = await database.createReader()
  await using program = await startServer({
    databaseUrl: reader.url,
    environment: { ACCESS_TOKENS: 'secret' },
  })
  expect([await ready(program), await create(program, 1)]).toEqual([503, 503])
  await database.query(`grant insert, update, delete on all tables in schema public to ${reader.name}`)
  await expect.poll(() => ready(program)).toBe(200)
  expect(await create(program, 1)).toBe(200)
})

test(
  'behind pgbouncer that pools by transaction every request is answered',
  needs('pgbouncer', hasPgbouncer),
  async () => {
    await using database = await createTestDatabase()
    await using pooler = await startPgbouncer(inject('postgresUrl'), {
      pool_mode: 'transaction',
      default_pool_size: '2',
    })
    const url = new URL(`${new URL(database.url).pathname}?pool_mode=transaction`, pooler.url).href
    await using program = await startServer({ databaseUrl: url, environment: { ACCESS_TOKENS: 'secret' } })
    let next = 0
    const visitor = async () => {
      for (let n = 0; n < 50; n++) expect(await create(program, next++)).toBe(200)
      expect(await ready(program)).toBe(200)
    }
    await Promise.all(Array.from({ length: 32 }, visitor))
    expect(await database.query('select count(*)::int as count from plants')).toEqual([{ count: 1_600 }])
  },
)
