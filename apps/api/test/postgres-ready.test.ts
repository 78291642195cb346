import { startServer } from '@plant-store/harness'
import { createTestDatabase } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'

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
