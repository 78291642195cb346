import {
  contractCases,
  createClient,
  createRecorder,
  jsonOf,
  timeoutCases,
  toJson,
} from '@plant-store/http/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

const service = await startService()
// Node starts no server whose headers may take longer than its requests.
const hurried = await startService({
  limits: { headersTimeoutMs: 400_000, requestTimeoutMs: 600 },
})

const description = await fetch(`${service.url}/openapi.json`)
const recorder = createRecorder(await description.text())
const client = createClient(service, recorder)
const hurriedClient = createClient(hurried, recorder)

afterAll(async () => {
  client.close()
  hurriedClient.close()
  await service[Symbol.asyncDispose]()
  await hurried[Symbol.asyncDispose]()
})

for (const { clause, name, run } of contractCases) {
  test(`${clause}: ${name}`, () => run(client))
}

describe('with short timeouts', () => {
  // Concurrently, because each case waits for a timeout.
  for (const { clause, name, run } of timeoutCases) {
    test.concurrent(`${clause}: ${name}`, () => run(hurriedClient))
  }
})

test('a page of plants ends where its texts reach a size', async () => {
  await using store = await startService({ limits: { pageTextBytesMax: 1 } })
  for (const id of [1n, 2n]) {
    await store.client.post(toJson({ id, name: 'a name' }))
  }

  const page = await store.client.ask('GET', '/plants')

  expect(jsonOf(page)).toEqual([{ id: 1n, name: 'a name' }])
  expect(page.headers.get('link')).toContain('after=1>')
})

describe('afterwards', () => {
  test('every operation was seen with its parameters, members and statuses', () => {
    // Not 408, 500 and 503, which not every operation is made to answer here.
    const statuses = / (2\d\d|304|400|401|403|404|412|413|415|417|431)$/
    const answers = recorder.declared().filter(answer => statuses.test(answer))
    expect(answers.length).toBeGreaterThan(40)

    const seen = recorder.seen()
    const parts = [...answers, ...recorder.parts()]
    expect(parts.filter(part => !seen.has(part))).toEqual([])
    expect(recorder.checked()).toBeGreaterThan(1_500)
  })

  test('the log names what each answer is about', () => {
    const lines = service.answered.filter(({ method, route, status }) => {
      const operation = `${method} ${route} ${status}`
      // Answers about one plant: to a create, and to what has an id in its path.
      return /^POST \/\w+ 200$|\/:id (200|204|304|404|412)$/.test(operation)
    })
    const routes = new Set(lines.map(({ route }) => route))
    expect(routes.size).toBeGreaterThan(1)

    const idPattern = /^(?!req|trace).*Id$/
    const unnamed = lines.filter(line => {
      const names = Object.keys(line)
      return !names.some(name => idPattern.test(name))
    })
    expect(unnamed).toEqual([])
  })

  test('no case makes the server log a defect', () => {
    expect([...service.logged, ...hurried.logged]).toEqual([])
  })
})
