import {
  contractCases,
  createClient,
  createRecorder,
  descriptionCases,
  timeoutCases,
} from '@plant-store/contract'
import { startServer } from '@plant-store/harness'
import { afterAll, describe, expect, test } from 'vitest'
import { prepareDatabase } from './database.ts'

/** The cases try more of them than anybody may. */
const manyWrongTokens = { WRONG_TOKENS_LIMIT: '1000000' }

// Of what fails up here, no hook is ever run.
await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
const program = starting.use(
  await startServer({ databaseUrl: database.url, environment: { HTTP_THREADS: '2', ...manyWrongTokens } }),
)
const hurriedDatabase = starting.use(await prepareDatabase())
const hurried = starting.use(
  await startServer({
    databaseUrl: hurriedDatabase.url,
    environment: {
      BASE_URL: 'https://plants.example/garden/store/',
      HEADERS_TIMEOUT: '300ms',
      REQUEST_TIMEOUT: '600ms',
      ACCESS_TOKENS: 'given-by-configuration',
      ...manyWrongTokens,
    },
  }),
)

/** Generous: a machine that tests everything at once is slow. */
const timeoutMs = 30_000

const recorder = createRecorder(await (await fetch(`${program.url}/openapi.json`)).text())
const client = createClient({ url: program.url, tokens: database.tokens }, recorder)
/** The same service below a path, with a description that says so. */
const hurriedRecorder = createRecorder(await (await fetch(`${hurried.url}/openapi.json`)).text())
const hurriedClient = createClient(
  { url: hurried.url, tokens: { ...hurriedDatabase.tokens, full: 'given-by-configuration' } },
  hurriedRecorder,
)
const resources = starting.move()

afterAll(async () => {
  client.close()
  hurriedClient.close()
  await resources.disposeAsync()
})

test('the tests run on the Node that it ships with', () => {
  expect(Number(process.versions.node.split('.')[0])).toBeGreaterThanOrEqual(26)
})

for (const { clause, name, run } of contractCases) test(`${clause}: ${name}`, () => run(client), timeoutMs)

describe('below a path, and with little patience', () => {
  // At once, as they wait.
  for (const { clause, name, run } of timeoutCases)
    test.concurrent(`${clause}: ${name}`, () => run(hurriedClient), timeoutMs)

  for (const { clause, name, run } of descriptionCases)
    test(`${clause}: ${name}`, () => run(hurriedClient), timeoutMs)
})

describe('afterwards', () => {
  test('every operation was seen with every parameter and member, and every status that a store can be brought to', () => {
    const wanted = recorder.declared().filter(each => / (2\d\d|400|401|403|404|413|415|417|431)$/.test(each))
    expect(wanted.length).toBeGreaterThan(40)
    const missing = [...wanted, ...recorder.parts()].filter(each => !recorder.seen().has(each))
    expect(missing).toEqual([])
    expect(recorder.checked()).toBeGreaterThan(1_500)
  })

  test('a signal stops it in good order, and nothing of it was a defect to it', async () => {
    client.close()
    hurriedClient.close()
    for (const each of [program, hurried]) {
      expect(await each.end('SIGTERM')).toBe(0)
      expect(each.log.at(-1)?.msg).toBe('stopped')
      expect(each.warnings()).toEqual([])
    }
  })
})
