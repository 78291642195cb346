import { createServer } from 'node:http'
import { listenLocally } from '@plant-store/harness'
import { contractCases, createClient, timeoutCases } from '@plant-store/http/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** A server with Node's own manners, for which every answer is the same. */
const careless = createServer((_request, response) => {
  response
    .writeHead(200, { 'content-type': 'application/json', 'content-length': 15 })
    .end('{"status":"ok"}')
})
let client: ReturnType<typeof createClient>

beforeAll(async () => {
  const url = `http://127.0.0.1:${await listenLocally(careless)}`
  const tokens = {
    full: 'full',
    readOnly: 'read',
    writeOnly: 'write',
    expired: 'old',
    metrics: 'metrics',
  }
  // Sees nothing wrong: here the cases themselves have to find out.
  client = createClient(
    { url, tokens, bodyBytesMax: 4096, headerBytesMax: 4096 },
    { check: () => {} },
  )
})
afterAll(() => {
  client.close()
  careless.closeAllConnections()
  careless.close()
})

test('no two cases have one name', () => {
  const names = [...contractCases, ...timeoutCases].map(
    ({ clause, name }) => `${clause}: ${name}`,
  )
  expect(names.length).toBeGreaterThan(100)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

describe('a server that promises nothing fails', () => {
  for (const { clause, name, run } of contractCases) {
    test(`${clause}: ${name}`, () => expect(run(client)).rejects.toThrow())
  }
})
