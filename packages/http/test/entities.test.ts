import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { describeInterface, failures, schemas } from '@plant-store/http'
import { type FastifyInstance, fastify } from 'fastify'
import { expect, test } from 'vitest'
import { createAnswerFailure } from '../src/answer/answer.ts'
import { entities } from '../src/entities.ts'
import { commonFailures } from '../src/errors/error-numbers.ts'
import { createToFailure } from '../src/errors/failures.ts'
import { createStoreRoutes } from '../src/plugin.ts'
import { notes } from './notes.ts'
import { lint } from './spectral.ts'

/** Hosts with one entity or two: what is mounted works and is described, and nothing else. */

const headers = { authorization: 'Bearer t', 'content-type': 'application/json' }
const newUseCases = () => ({
  plants: createPlantUseCases({ plants: createMemoryPlantRepository() }),
  notes: { notes: new Map() },
})
type Name = keyof ReturnType<typeof newUseCases>

const both = { ...entities, notes }
const answerFailure = createAnswerFailure(createToFailure({ ...failures, ...notes.failures }))

async function mount(names: readonly Name[], known = both) {
  const app = fastify()
  const describe = describeInterface(app)
  const asked: string[] = []
  const gate = (_: unknown, scope: string) => {
    asked.push(scope)
    return { name: 'anybody' }
  }
  const useCases = newUseCases()
  const given = Object.fromEntries(names.map(name => [name, useCases[name]]))
  app.register(createStoreRoutes(known, answerFailure), { gate, ...given })
  await app.ready()
  return { app, describe, asked }
}

const kept = {
  async plants(app: FastifyInstance) {
    const added = await app.inject({ method: 'POST', url: '/plants', headers, body: '{"id":7,"name":"n"}' })
    expect([added.statusCode, added.body]).toEqual([200, '{"name":"n"}'])
    expect((await app.inject({ url: '/plants/7', headers })).body).toBe('{"id":7,"name":"n"}')
    expect((await app.inject({ url: '/plants/8', headers })).json()).toMatchObject({ error: 40402 })
    const lines = { ...headers, 'content-type': 'application/x-ndjson' }
    const batch = {
      method: 'POST',
      url: '/plants/batch',
      headers: lines,
      body: '{"id":9,"name":"n"}',
    } as const
    expect((await app.inject(batch)).json()).toMatchObject({ created: 1 })
  },
  async notes(app: FastifyInstance) {
    const body = `{"id":${2n ** 63n - 1n},"name":"g"}`
    const added = await app.inject({ method: 'POST', url: '/notes', headers, body })
    expect([added.statusCode, added.body]).toEqual([200, body])
    expect((await app.inject({ url: `/notes/${2n ** 63n - 1n}`, headers })).body).toBe(body)
    expect((await app.inject({ url: '/notes?name=g', headers })).body).toBe(`[${body}]`)
    expect((await app.inject({ url: '/notes?name=h', headers })).body).toBe('[]')
    expect((await app.inject({ method: 'HEAD', url: '/notes', headers })).statusCode).toBe(200)
    expect((await app.inject({ url: '/notes/8', headers })).json()).toMatchObject({ error: 40403 })
    const bad = await app.inject({ method: 'POST', url: '/notes', headers, body: '{"id":"1"}' })
    expect([bad.statusCode, bad.json().error]).toEqual([400, 40013])
    const other = await app.inject({ method: 'DELETE', url: '/notes', headers })
    expect([other.statusCode, other.headers.allow]).toEqual([405, 'GET, HEAD, POST'])
    const text = { ...headers, 'content-type': 'text/plain' }
    expect((await app.inject({ method: 'POST', url: '/notes', headers: text, body: 'g' })).statusCode).toBe(
      415,
    )
  },
}

const reversed = { notes, ...entities } as typeof both

test.each<[string, Name[], typeof both]>([
  ['plants alone', ['plants'], both],
  ['notes alone', ['notes'], both],
  ['plants and notes', ['plants', 'notes'], both],
  ['notes and plants', ['notes', 'plants'], reversed],
])('%s are mounted and described, and nothing else', async (_, names, known) => {
  const { app, describe, asked } = await mount(names, known)
  for (const name of names) await kept[name](app)
  const others = (['plants', 'notes'] as const).filter(name => !names.includes(name))
  for (const name of others) expect((await app.inject({ url: `/${name}`, headers })).statusCode).toBe(404)
  expect(new Set(asked)).toEqual(new Set(['plants:read', 'plants:write']))

  const { paths, components, ...rest } = describe()
  const sorted = names.toSorted()
  expect(rest).toMatchObject({
    info: { description: expect.stringContaining(`Stores ${sorted.join(' and ')} under`) },
    tags: sorted.map(name => both[name].tag),
  })
  expect(new Set(Object.keys(paths).map(path => path.split('/')[1]))).toEqual(new Set(names))
  const described = names.flatMap(name => Object.values(both[name].schemas).map(({ title }) => title))
  expect(Object.keys(components.schemas).sort()).toEqual([...described, 'Error'].sort())
  const rows = names.flatMap(name => Object.values<readonly [number, string]>(both[name].failures))
  const published = [...JSON.stringify(components.responses).matchAll(/- (\d{5}):/g)].map(([, number]) =>
    Number(number),
  )
  const common = Object.values(commonFailures).map(([number]) => number)
  expect(published).toEqual([...common, ...rows.map(([number]) => number)].sort())
  expect(await lint(JSON.stringify(describe()), 'spectral-openapi.yaml')).toMatch(/^No results/)
})

test('each number has one meaning, and the published lists have every entity', () => {
  const all = Object.values(entities)
  const rows = [commonFailures, ...all.map(entity => entity.failures)].flatMap(each => Object.entries(each))
  expect(Object.entries(failures).sort()).toEqual(rows.sort())
  expect(new Set(rows.map(([, [number]]) => number)).size).toBe(rows.length)
  for (const entity of all) expect(schemas).toMatchObject(entity.schemas)
})
