import { AccessError, type Gate } from '@plant-store/access'
import { createPlantUseCases, DomainError, int64Max, isDomainError, parsePlant } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import {
  answerFailure,
  createThrottle,
  describeInterface,
  schemas,
  storeRoutes,
  tokenName,
} from '@plant-store/http'
import { fastify } from 'fastify'
import { expect, test } from 'vitest'
import { lint } from './spectral.ts'

/** What a service that mounts the routes takes from the package for its own. */

const gate: Gate = ({ token }) => {
  if (token === undefined) throw new AccessError('no-token', 'who are you?')
  if (token !== 'secret') throw new AccessError('invalid-token', 'nobody we know')
  return { name: 'flora' }
}
const newPlants = () => createPlantUseCases({ plants: createMemoryPlantRepository() })
const headers = { authorization: 'Bearer secret' }

test('its own routes answer failures of plants and of access as ours do', async () => {
  const app = fastify()
  app.setErrorHandler((error, request, reply) =>
    isDomainError(error) ? answerFailure(error, request, reply) : reply.code(418).send({ own: `${error}` }),
  )
  app.get('/taken', () => Promise.reject(new DomainError('id-taken', 'id 1 is taken')))
  app.get('/own', () => Promise.reject(new Error('own')))
  const taken = await app.inject('/taken')
  expect([taken.statusCode, taken.headers['content-type'], taken.body]).toEqual([
    400,
    'application/json',
    '{"error":40003,"message":"id 1 is taken"}',
  ])
  expect((await app.inject('/own')).json()).toEqual({ own: 'Error: own' })
})

test('its own routes write plants by our schemas, exactly', async () => {
  const app = fastify()
  app.get('/plant', { schema: { response: { 200: schemas.StoredPlant } } }, async () => ({
    id: int64Max,
    name: 'Monstera',
    secret: 'not described',
  }))
  expect((await app.inject('/plant')).body).toBe(`{"id":${int64Max},"name":"Monstera"}`)
})

test('its hooks see whom the gate admitted, beside properties of the same names', async () => {
  const app = fastify()
  const seen: unknown[] = []
  for (const name of ['trace', 'tokenName', 'plantId', 'errorNumber']) app.decorateRequest(name, name)
  app.addHook('onResponse', async request => {
    const own = request as unknown as Record<string, unknown>
    seen.push([request[tokenName], own['trace'], own['tokenName'], own['plantId'], own['errorNumber']])
  })
  app.get('/own', async () => 'own')
  app.register(storeRoutes, { plants: newPlants(), gate })
  await app.inject({ url: '/plants/1', headers })
  await app.inject('/plants')
  await app.inject('/own')
  const own = ['trace', 'tokenName', 'plantId', 'errorNumber']
  expect(seen).toEqual([
    ['flora', ...own],
    [undefined, ...own],
    [undefined, ...own],
  ])
})

test('it counts wrong tokens, although the host passes only one throttle', async () => {
  const app = fastify()
  const throttle = createThrottle(2)
  for (const prefix of ['/north', '/south'])
    app.register(storeRoutes, { prefix, plants: newPlants(), gate, throttle })
  app.register(storeRoutes, { prefix: '/open', plants: newPlants(), gate })
  const guess = async (prefix: string) =>
    (await app.inject({ url: `${prefix}/plants`, headers: { authorization: 'Bearer guess' } })).json().error
  expect([await guess('/north'), await guess('/south')]).toEqual([40102, 40102])
  expect([await guess('/north'), await guess('/south'), await guess('/open')]).toEqual([42901, 42901, 40102])
  expect((await app.inject({ url: '/north/plants', headers })).statusCode).toBe(200)
})

test('it keeps to the limits that the host passes', async () => {
  const app = fastify()
  const plants = newPlants()
  for (const id of [1n, 2n]) await plants.create(parsePlant({ id, name: 'n' }))
  app.register(storeRoutes, { plants, gate, limits: { pageTextBytesMax: 1 } })
  const page = await app.inject({ url: '/plants', headers })
  expect(page.json()).toEqual([{ id: 1, name: 'n' }])
})

test('it describes our operations under its prefix, beside its own', async () => {
  const app = fastify()
  const describe = describeInterface(app)
  const own = { operationId: 'own', tags: ['plants'], response: { 200: { type: 'string' } } }
  app.get('/own', { schema: own }, async () => 'own')
  app.register(storeRoutes, { prefix: '/t/:tenant', plants: newPlants(), gate })
  await app.ready()
  const { paths, components } = describe()
  expect(describe()).toMatchObject({ servers: [{ url: '/' }] })
  expect(Object.keys(paths).sort()).toEqual([
    '/t/{tenant}/plants',
    '/t/{tenant}/plants/batch',
    '/t/{tenant}/plants/{id}',
  ])
  const tenant = { name: 'tenant', in: 'path', required: true, schema: { type: 'string' } }
  expect(paths['/t/{tenant}/plants']).toMatchObject({ parameters: [tenant] })
  expect(paths['/t/{tenant}/plants/{id}']).toMatchObject({ parameters: [tenant, { name: 'id' }] })
  const written = JSON.stringify({ paths, components })
  expect(written).toContain(`"minimum":${-(2n ** 63n)},"maximum":${2n ** 63n - 1n}`)
  // Each with its own, as the whole document may not ask for a token.
  expect(written.match(/"security":\[\{"bearerAuth":\[\]\}\]/g)).toHaveLength(
    written.match(/"operationId"/g)?.length as number,
  )
})

test('what it describes is a valid document, and so is one that it is merged into', async () => {
  const app = fastify()
  const describe = describeInterface(app)
  app.register(storeRoutes, { prefix: '/garden', plants: newPlants(), gate })
  await app.ready()
  const description = describe()
  const merged = {
    openapi: '3.1.0',
    info: { title: 'Garden', version: '7.0.0' },
    paths: {
      '/': { get: { operationId: 'home', responses: { 200: { description: 'home' } } } },
      ...description.paths,
    },
    components: description.components,
  }
  for (const document of [description, merged]) {
    expect(await lint(JSON.stringify(document), 'spectral-openapi.yaml')).toMatch(/^No results/)
  }
})
