import { afterAll, expect, test } from 'vitest'
import { runHttpCases } from '../src/http-cases.ts'
import { runJsonSuite } from '../src/json-suite.ts'
import { runNaughtyStrings } from '../src/naughty.ts'
import { startProgram } from '../src/program.ts'

const program = await startProgram()
const { client } = program
afterAll(() => program[Symbol.asyncDispose]())

test('JSONTestSuite, as the body and within name and tag', async () => {
  const { cases, requests, failures } = await runJsonSuite(client, 10n ** 9n)
  expect(failures).toEqual([])
  expect(cases).toBe(318)
  expect(requests).toBeGreaterThan(3 * 318)
}, 60_000)

test('the Big List of Naughty Strings, wherever a request has room for one', async () => {
  const { cases, requests, failures } = await runNaughtyStrings(client, 2n * 10n ** 9n)
  expect(failures).toEqual([])
  expect(cases).toBeGreaterThan(400)
  expect(requests).toBeGreaterThan(8 * 400)
}, 60_000)

test('requests whose end could be a matter of opinion', async () => {
  const { cases, failures } = await runHttpCases(client, 3n * 10n ** 9n)
  expect(failures).toEqual([])
  expect(cases).toBeGreaterThan(60)
}, 60_000)

test('nothing of it was a defect to the program', () => {
  expect(program.warnings()).toEqual([])
})
