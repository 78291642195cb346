import {
  contractCases,
  createClient,
  createRecorder,
  held,
  timeoutCases,
  toJson,
} from '@plant-store/contract'
import { afterAll, describe, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

const service = await startService()
const hurried = await startService({
  limits: { headersTimeoutMs: 300, requestTimeoutMs: 600 },
})
/** Generous: a machine that tests everything at once is slow. */
const timeoutMs = 30_000

const recorder = createRecorder(await (await fetch(`${service.url}/openapi.json`)).text())
const client = createClient(service, recorder)
const hurriedClient = createClient(hurried, recorder)

afterAll(async () => {
  client.close()
  hurriedClient.close()
  await service[Symbol.asyncDispose]()
  await hurried[Symbol.asyncDispose]()
})

for (const { clause, name, run } of contractCases) {
  test(`${clause}: ${name}`, () => run(client), timeoutMs)
}

describe('with little patience', () => {
  // At once, as they wait.
  for (const { clause, name, run } of timeoutCases) {
    test.concurrent(`${clause}: ${name}`, () => run(hurriedClient), timeoutMs)
  }
})

test('a page of plants ends where its texts reach a size', async () => {
  await using store = await startService({ limits: { pageTextBytesMax: 1 } })
  for (const id of [1n, 2n]) {
    await store.client.post(toJson({ id, name: 'a name' }))
  }

  const page = await store.client.ask('GET', '/plants')

  expect(held(page)).toEqual([{ id: 1n, name: 'a name' }])
  expect(page.headers.get('link')).toContain('after=1>')
})

describe('afterwards', () => {
  test('every operation was seen with its parameters, members and statuses', () => {
    const wanted = recorder
      .declared()
      .filter(each => / (2\d\d|304|400|401|403|404|412|413|415|417|431)$/.test(each))
    expect(wanted.length).toBeGreaterThan(40)
    const missing = [...wanted, ...recorder.parts()].filter(
      each => !recorder.seen().has(each),
    )
    expect(missing).toEqual([])
    expect(recorder.checked()).toBeGreaterThan(1_500)
  })

  test('the log names what each answer is about', () => {
    const about = service.answered.filter(({ method, route = '', status }) => {
      const isCreated = method === 'POST' && /^\/\w+$/.test(route) && status === 200
      return (
        isCreated || (/\/:id$/.test(route) && [200, 204, 304, 404, 412].includes(status))
      )
    })
    expect(new Set(about.map(({ route }) => route)).size).toBeGreaterThan(1)
    const isNamed = (line: object) =>
      Object.keys(line).some(name => /^(?!req|trace).*Id$/.test(name))
    expect(about.filter(line => !isNamed(line))).toEqual([])
  })

  test('nothing of it was a defect to the server', () => {
    expect([...service.logged, ...hurried.logged]).toEqual([])
  })
})
