import { createTestDatabase } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { ask, create, start } from './ask.ts'

test('a server whose user may not write is not ready, until the user may', async () => {
  await using database = await createTestDatabase()
  await (await openStorage({ url: database.url }))[Symbol.asyncDispose]()
  await using reader = await database.createReader()
  await using program = await start({}, { databaseUrl: reader.url })
  const ready = async () => (await ask(program, 'GET /readyz')).status
  expect([await ready(), (await create(program, 1)).status]).toEqual([503, 503])
  await database.query(`grant insert, update, delete on all tables in schema public to ${reader.name}`)
  await expect.poll(ready).toBe(200)
  expect((await create(program, 1)).status).toBe(200)
})
