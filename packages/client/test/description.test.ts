import assert from 'node:assert/strict'
import { createPlantClient, errorNumbers, type PlantClient } from '@plant-store/client'
import { failures } from '@plant-store/http/server'
import { expect, test } from 'vitest'
import { startMemoryStore } from './memory-store.ts'

/**
 * Holds the client against the description that the server serves, so that neither can
 * change alone.
 */

interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly responses: Readonly<Record<string, object>>
}
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

await using store = await startMemoryStore()
const served = await fetch(`${store.baseUrl}/openapi.json`)
const description: Description = JSON.parse(await served.text())
const plantOperations = Object.values(description.paths)
  .flatMap(item => Object.values(item))
  .filter(({ tags }) => tags.includes('plants'))

/** One call of every method of the client. */
const calls: {
  readonly [Method in keyof PlantClient]: (client: PlantClient) => Promise<unknown>
} = {
  create: client => client.create(plant),
  createMany: client => client.createMany([plant]),
  read: client => client.read(1n),
  readVersioned: client => client.readVersioned(1n),
  list: client => client.list(),
  pages: client => client.pages().next(),
  replace: client => client.replace(plant),
  remove: client => client.remove(1n),
}
const plant = { id: 1n, name: 'n' }
const goodBodies = {
  create: '{"name":"n"}',
  createMany: '{"created":1,"existing":0,"refused":0,"faults":[]}',
  read: '{"id":1,"name":"n"}',
  readVersioned: '{"id":1,"name":"n"}',
  list: '[]',
  pages: '[]',
  replace: '{"name":"n"}',
  remove: '',
}

function methodOf({ operationId }: Operation) {
  const name = operationId.replace(/Plants$/, 'Many').replace(/Plant$/, '')
  const method = name === 'listMany' ? 'list' : name
  assert(isMethod(method), `the client has no method ${method}`)
  return method
}

function isMethod(name: string): name is keyof PlantClient {
  return Object.hasOwn(calls, name)
}

test('the numbers that the client names are those that the server publishes', () => {
  const published = new Map<string, number>()
  for (const [name, [number]] of Object.entries(failures)) {
    published.set(name, number)
  }

  expect(Object.fromEntries(published)).toMatchObject(errorNumbers)
})

test('the client has a method for every operation on plants, and no other', () => {
  const client = createPlantClient({ baseUrl: 'http://localhost', token: 't' })
  // `pages` repeats `list`, and `readVersioned` returns more of the answer to a read.
  const methods = [...plantOperations.map(methodOf), 'pages', 'readVersioned']

  expect(Object.keys(client).sort()).toEqual(methods.sort())
})

test.each(plantOperations)(
  '$operationId understands its successes, and no others',
  async operation => {
    const method = methodOf(operation)
    for (const status of [200, 201, 202, 204]) {
      const outcome = await call(method, status, goodBodies[method])
      const isRefused = outcome instanceof Error
      expect(isRefused, `${status}: ${outcome}`).toBe(!(status in operation.responses))
    }
  },
)

/** Calls a method, and returns its result or error of this answer. */
async function call(method: keyof PlantClient, status: number, body: string) {
  const client = createPlantClient({
    baseUrl: 'http://localhost',
    token: 't',
    attemptsMax: 1,
    fetch: async () =>
      new Response(status === 204 ? null : body, { status, headers: { etag: '"v2"' } }),
  })
  return calls[method](client).catch(error => error)
}
