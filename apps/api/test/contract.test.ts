import { startServer } from '@plant-store/harness'
import {
  contractCases,
  createClient,
  createRecorder,
  processCases,
} from '@plant-store/http/testing'
import { afterAll, expect, test } from 'vitest'
import { prepareDatabase } from './database.ts'

// Requests that fail below the routes reach no hook.
await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
// The cases try more wrong tokens than anybody may.
const environment = { HTTP_THREADS: '2' }
const program = starting.use(
  await startServer({ databaseUrl: database.url, environment }),
)
const recorder = createRecorder(await (await fetch(`${program.url}/openapi.json`)).text())
const client = createClient({ url: program.url, tokens: database.tokens }, recorder)
const resources = starting.move()
afterAll(async () => {
  client.close()
  await resources.disposeAsync()
})

test('the tests run on the Node that it ships with', () => {
  expect(Number(process.versions.node.split('.')[0])).toBeGreaterThanOrEqual(26)
})

// The package http tests the other cases, so only the tooling repeats them here.
const cases = process.env['ALL_CASES'] === '1' ? contractCases : processCases

for (const { clause, name, run } of cases) {
  test(`${clause}: ${name}`, () => run(client))
}

test('a signal stops it cleanly afterwards, and its log has no defect', async () => {
  client.close()
  // The terminal or the session of an operator has ended.
  expect(await program.end('SIGHUP')).toBe(0)
  expect(program.log.at(-1)?.msg).toBe('stopped')
  expect(program.warnings()).toEqual([])
})
