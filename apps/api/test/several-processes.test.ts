import { type Server, startServer } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { afterAll, expect, test } from 'vitest'
import { ask } from './ask.ts'
import { prepareDatabase } from './database.ts'

await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
const [one, other] = [
  starting.use(await startServer({ databaseUrl: database.url })),
  starting.use(await startServer({ databaseUrl: database.url })),
]
const both = [one, other]
const token = database.tokens.full
const resources = starting.move()
afterAll(() => resources.disposeAsync())

const racers = 20
const rounds = 4

test('one of twenty racing changes through two processes is made', async () => {
  const race = (racer: number, target: string, headers: Record<string, string> = {}) => {
    const body = target.startsWith('PUT') ? `{"name":"racer ${racer}"}` : null
    return ask(both[racer % 2] as Server, target, { token, headers, body })
  }
  for (const creates of [true, false]) {
    for (let round = 0; round < rounds; round++) {
      const id = creates ? round : rounds + round
      const path = `/plants/${id}`
      const tag = creates ? undefined : (await race(0, `PUT ${path}`)).headers.get('etag')
      // Each way in which a condition is judged.
      const tags = round % 2 === 0 ? `${tag}` : `"another", ${tag}`
      const condition: Record<string, string> = creates
        ? { 'if-none-match': '*' }
        : { 'if-match': tags }
      const methodOf = (racer: number) => (creates || racer % 4 < 2 ? 'PUT' : 'DELETE')
      const answers = await Promise.all(
        Array.from({ length: racers }, (_, racer) =>
          race(racer, `${methodOf(racer)} ${path}`, condition),
        ),
      )
      const winners = answers.flatMap(({ status }, racer) =>
        status < 300 ? [racer] : [],
      )
      expect(winners, `${path}`).toHaveLength(1)
      // A removal finds no plant once another one has removed it.
      const losers = answers.filter(
        ({ status }, racer) =>
          status === 412 || (status === 404 && methodOf(racer) === 'DELETE'),
      )
      expect(losers, `${path}`).toHaveLength(racers - 1)
      const [winner] = winners as [number]
      const now = await race(winner + 1, `GET ${path}`)
      const found =
        now.status === 404
          ? undefined
          : { etag: now.headers.get('etag'), plant: JSON.parse(now.text) }
      const etag = answers[winner]?.headers.get('etag')
      const left =
        methodOf(winner) === 'DELETE'
          ? undefined
          : { etag, plant: { id, name: `racer ${winner}` } }
      expect(found, `${path}`).toEqual(left)
    }
  }
})

test('a token revoked in one process is refused by all', async () => {
  const names = both.map(async ({ url }) =>
    (await fetch(`${url}/healthz`)).headers.get('x-request-id'),
  )
  const [first, second] = (await Promise.all(names)).map(name => name?.slice(0, 11))
  expect(first).not.toBe(second)

  await using storage = await openStorage({ url: database.url })
  await storage.tokens.remove('full')
  const statuses = () =>
    Promise.all(
      both.map(async server => (await ask(server, 'GET /plants/1', { token })).status),
    )
  await expect.poll(statuses, { timeout: 5_000 }).toEqual([401, 401])
})

test('its log names a database without the password', () => {
  const { password } = new URL(database.url)
  expect(password).not.toBe('')
  expect(JSON.stringify(one.log)).toContain(new URL(database.url).pathname)
  expect(JSON.stringify(one.log)).not.toContain(password)
})
