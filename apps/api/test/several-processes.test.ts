import { startServer } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { prepareDatabase } from './database.ts'

test('several processes on one database are one store', async () => {
  await using database = await prepareDatabase()
  await using one = await startServer({ databaseUrl: database.url })
  await using other = await startServer({ databaseUrl: database.url })
  const both = [one, other]
  const headers = { authorization: `Bearer ${database.tokens.full}`, 'content-type': 'application/json' }
  const create = async ({ url }: { url: string }, id: number) => {
    const answer = await fetch(`${url}/plants`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ id, name: `from ${url}` }),
    })
    const { error } = (await answer.json()) as { error?: number }
    return error ?? answer.status
  }

  const ids = Array.from({ length: 200 }, (_, id) => id)
  const outcomes = await Promise.all(ids.map(id => Promise.all(both.map(each => create(each, id)))))
  for (const id of ids) {
    expect(outcomes[id]?.toSorted(), `id ${id}`).toEqual([200, 40003])
    const winner = both[outcomes[id]?.indexOf(200) as number]
    for (const { url } of both) {
      const answer = await fetch(`${url}/plants/${id}`, { headers })
      expect(await answer.json()).toEqual({ id, name: `from ${winner?.url}` })
    }
  }

  await using storage = await openStorage({ url: database.url })
  await storage.tokens.remove('full')
  const statuses = () =>
    Promise.all(both.map(async ({ url }) => (await fetch(`${url}/plants/0`, { headers })).status))
  await expect.poll(statuses, { timeout: 5_000 }).toEqual([401, 401])
})

test('its log names a database without the password', async () => {
  await using database = await prepareDatabase()
  await using program = await startServer({ databaseUrl: database.url })
  const { password } = new URL(database.url)
  expect(password).not.toBe('')
  expect(JSON.stringify(program.log)).toContain(new URL(database.url).pathname)
  expect(JSON.stringify(program.log)).not.toContain(password)
})
