import assert from 'node:assert/strict'
import { type Server, startServer } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { afterAll, expect, test } from 'vitest'
import { ask } from './ask.ts'
import { prepareDatabase } from './database.ts'

await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
const one = starting.use(await startServer({ databaseUrl: database.url }))
const other = starting.use(await startServer({ databaseUrl: database.url }))
const token = database.tokens.full
const resources = starting.move()
afterAll(() => resources.disposeAsync())

/** Sends a request to one of the two processes, by the number of its sender. */
function send(racer: number, target: string, headers: Record<string, string> = {}) {
  const server = racer % 2 === 0 ? one : other
  const body = target.startsWith('PUT') ? `{"name":"racer ${racer}"}` : null
  return ask(server, target, { token, headers, body })
}

interface Race {
  readonly id: number
  readonly condition: Record<string, string>
  readonly methods: readonly string[]
}

/** Lets twenty requests change one plant at once, and expects that one of them does. */
async function race({ id, condition, methods }: Race): Promise<void> {
  const racers = Array.from({ length: 20 }, (_, racer) => {
    const method = methods[(racer >> 1) % methods.length] ?? ''
    return { racer, method }
  })
  const sending = racers.map(async ({ racer, method }) => {
    const answer = await send(racer, `${method} /plants/${id}`, condition)
    return { racer, method, answer }
  })
  const results = await Promise.all(sending)
  const winners = results.filter(({ answer }) => answer.status < 300)
  const [winner] = winners
  assert(winner !== undefined && winners.length === 1, `${winners.length} racers won`)

  const losers = results.filter(result => result !== winner)
  for (const { racer, method, answer } of losers) {
    // A removal finds no plant once another one has removed it.
    const statuses = method === 'DELETE' ? [404, 412] : [412]
    expect(statuses, `the answer to racer ${racer}: ${answer.text}`).toContain(
      answer.status,
    )
  }

  const read = await send(winner.racer + 1, `GET /plants/${id}`)
  if (winner.method === 'DELETE') {
    expect(read.status).toBe(404)
    return
  }
  expect(JSON.parse(read.text)).toEqual({ id, name: `racer ${winner.racer}` })
  expect(read.headers.get('etag')).toBe(winner.answer.headers.get('etag'))
}

test('one of twenty racing creates through two processes is made', async () => {
  for (const id of [0, 1, 2, 3]) {
    await race({ id, condition: { 'if-none-match': '*' }, methods: ['PUT'] })
  }
})

// Each way in which a condition is judged.
test.each([
  { tags: 'one tag', start: '', firstId: 4 },
  { tags: 'several tags', start: '"another", ', firstId: 6 },
])(
  'one of twenty racing changes through two processes is made: $tags',
  async ({ start, firstId }) => {
    for (const id of [firstId, firstId + 1]) {
      const created = await send(0, `PUT /plants/${id}`)
      const condition = { 'if-match': `${start}${created.headers.get('etag')}` }
      await race({ id, condition, methods: ['PUT', 'DELETE'] })
    }
  },
)

test('a token revoked in one process is refused by all', async () => {
  const processName = async ({ url }: Server) => {
    const answer = await fetch(`${url}/healthz`)
    return answer.headers.get('x-request-id')?.slice(0, 11)
  }
  expect(await processName(one)).not.toBe(await processName(other))

  await using storage = await openStorage({ url: database.url })
  await storage.tokens.remove('full')
  const statuses = async () => {
    const toOne = await ask(one, 'GET /plants/1', { token })
    const toOther = await ask(other, 'GET /plants/1', { token })
    return [toOne.status, toOther.status]
  }
  await expect.poll(statuses).toEqual([401, 401])
})

test('its log names a database without the password', () => {
  const { password } = new URL(database.url)
  expect(password).not.toBe('')
  expect(JSON.stringify(one.log)).toContain(new URL(database.url).pathname)
  expect(JSON.stringify(one.log)).not.toContain(password)
})
