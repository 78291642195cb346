import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import basicAuth from '@fastify/basic-auth'
import jwt from '@fastify/jwt'
import rateLimit from '@fastify/rate-limit'
import swagger from '@fastify/swagger'
import underPressure from '@fastify/under-pressure'
import { AccessError, type Gate } from '@plant-store/access'
import { createPlantUseCases, int64Max, int64Min, parsePlant } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { storeRoutes } from '@plant-store/http'
import { type FastifyInstance, type FastifyServerOptions, fastify } from 'fastify'
import { afterEach, describe, expect, test } from 'vitest'
import { lint } from './spectral.ts'

/** The plugin in a Fastify of somebody else's, with everything that Fastify does when nobody tells it otherwise. */

let app: FastifyInstance
afterEach(() => app.close())

const gate: Gate = async ({ token }) => {
  if (token === undefined) throw new AccessError('no-token', 'who are you?')
  if (token !== 'secret') throw new AccessError('invalid-token', 'nobody we know')
  return { name: 'flora' }
}
const newPlants = () => createPlantUseCases({ plants: createMemoryPlantRepository() })
const authorization = 'Bearer secret'
const json = { authorization, 'content-type': 'application/json' }

const mount = () => app.register(storeRoutes, { prefix: '/garden', plants: newPlants(), gate })

async function ask(method: 'DELETE' | 'GET' | 'HEAD' | 'POST' | 'PUT', url: string, body?: string) {
  const headers = body === undefined ? { authorization } : json
  return await app.inject({ method, url, headers, ...(body !== undefined && { body }) })
}

/** A service with ways of its own: coercing schemas, parsers, hooks, handlers of errors and of paths nobody has. */
async function startForeign(options: FastifyServerOptions = {}) {
  const seen: string[] = []
  app = fastify({
    ajv: { customOptions: { coerceTypes: 'array' } },
    ...options,
  })
  app.setErrorHandler((error, _request, reply) => reply.code(418).send({ foreign: `${error}` }))
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ foreign: 'nothing' }))
  app.addContentTypeParser('text/plain', { parseAs: 'string' }, (_request, body, done) =>
    done(null, { text: body }),
  )
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) =>
    done(null, { foreign: JSON.parse(body as string) }),
  )
  app.addContentTypeParser('*', (_request, _payload, done) => done(null, 'anything'))
  app.setReplySerializer(payload => JSON.stringify({ wrapped: payload }))
  app.addHook('onRequest', async request => {
    seen.push(`${request.method} ${request.url}`)
  })
  app.addHook('onSend', async (_request, reply) => {
    reply.header('x-foreign', 'yes')
  })
  const schema = {
    body: {
      type: 'object',
      properties: { foreign: { type: 'object', properties: { id: { type: 'integer' } } } },
    },
  }
  app.post('/own', { schema }, async request => ({ got: request.body, token: 'tokenName' in request }))
  app.get('/own', async () => {
    throw new Error('own')
  })
  mount()
  await app.ready()
  return seen
}

const errorBody = (number: number) => ({ error: number, message: expect.any(String) })

test('Fastify knows the plugin by name, and which Fastify it wants', async () => {
  await startForeign()
  expect(app.printPlugins()).toContain('@plant-store/http')
  expect(Reflect.get(storeRoutes, Symbol.for('plugin-meta'))).toMatchObject({ fastify: '5.x' })
})

test('ids and texts are exact under the prefix', async () => {
  await startForeign()
  for (const id of [int64Min, 9007199254740993n, int64Max]) {
    const body = `{"id":${id},"name":"\\u0000x"}`.replace('\\u0000', '植物 ')
    const created = await ask('POST', '/garden/plants', body)
    expect([created.statusCode, created.body]).toEqual([200, '{"name":"植物 x"}'])
    expect(created.headers['content-type']).toBe('application/json')
    expect((await ask('GET', `/garden/plants/${id}`)).body).toBe(`{"id":${id},"name":"植物 x"}`)
  }
  const page = await ask('GET', '/garden/plants?limit=1')
  expect(page.headers.link).toBe(`</garden/plants?limit=1&after=${int64Min}>; rel="next"`)
  const replaced = await ask('PUT', '/garden/plants/5', '{"name":""}')
  expect([replaced.statusCode, replaced.body]).toEqual([200, '{"name":""}'])
  const removed = await ask('DELETE', '/garden/plants/5')
  expect([removed.statusCode, removed.body]).toEqual([204, ''])
  const head = await ask('HEAD', '/garden/plants')
  expect([head.statusCode, head.body]).toEqual([200, ''])
})

test.each<[string, object, number, number]>([
  ['an id as a string', { body: '{"id":"1","name":"n"}' }, 400, 40002],
  ['true as an id', { body: '{"id":true,"name":"n"}' }, 400, 40002],
  ['an id past int64', { body: '{"id":9223372036854775808,"name":"n"}' }, 400, 40002],
  ['a number as a name', { body: '{"id":1,"name":5}' }, 400, 40002],
  ['null as a name', { body: '{"id":1,"name":null}' }, 400, 40002],
  ['a member twice', { body: '{"id":1,"id":2,"name":"n"}' }, 400, 40001],
  ['a member that means a prototype', { body: '{"id":1,"__proto__":{"name":"n"}}' }, 400, 40002],
  ['broken JSON', { body: '{"id":1' }, 400, 40001],
  ['no body', {}, 400, 40001],
  ['bytes that are not UTF-8', { body: Buffer.from([0x22, 0xff, 0x22]) }, 400, 40001],
  ['plain text', { body: 'x', headers: { ...json, 'content-type': 'text/plain' } }, 415, 41501],
  ['a compressed body', { body: '{}', headers: { ...json, 'content-encoding': 'gzip' } }, 415, 41502],
  ['too large a body', { body: `{"id":1,"name":"${'x'.repeat(2_000)}"}` }, 413, 41301],
  ['no token', { headers: {} }, 401, 40101],
  ['a method that the path has not', { method: 'PATCH' }, 405, 40501],
  ['a query that is not UTF-8', { method: 'GET', url: '/garden/plants?tag=%ff' }, 400, 40006],
])('%s is answered in the one shape under the prefix', async (_name, given, status, number) => {
  await startForeign({ bodyLimit: 1024 })
  const answer = await app.inject({ method: 'POST', url: '/garden/plants', headers: json, ...given })
  expect([answer.statusCode, answer.json()]).toEqual([status, errorBody(number)])
  expect(answer.headers['content-type']).toBe('application/json')
  expect(Object.keys(answer.json())).toEqual(['error', 'message'])
})

test.each<[string, string, string]>([
  ['/garden/plants', 'Application/JSON; Charset="UTF-8"', '{"id":1,"name":"n"}'],
  ['/garden/plants/batch', 'APPLICATION/X-NDJSON;charset=utf-8', '{"id":2,"name":"n"}'],
])('a body to %s may be of the media type %s', async (url, mediaType, body) => {
  await startForeign()
  const headers = { authorization, 'content-type': mediaType }
  expect((await app.inject({ method: 'POST', url, headers, body })).statusCode).toBe(200)
})

test('the header section is left to the service around: it may take a host that ours would not', async () => {
  await startForeign()
  const headers = { authorization, host: 'a b' }
  const { statusCode } = await app.inject({ url: '/garden/plants', headers })
  expect(statusCode).toBe(200)
})

test('nothing of it is outside its prefix', async () => {
  const seen = await startForeign()
  const post = async (mediaType: string, body: string) =>
    (await app.inject({ method: 'POST', url: '/own', headers: { 'content-type': mediaType }, body })).json()
  const got = (got: unknown) => ({ wrapped: { got, token: false } })
  expect(await post('application/json', '{"id":"7"}')).toEqual(got({ foreign: { id: 7 } }))
  expect(await post('text/plain', 't')).toEqual(got({ text: 't' }))
  const failed = await app.inject('/own')
  expect([failed.statusCode, failed.json()]).toEqual([418, { wrapped: { foreign: 'Error: own' } }])
  const nowhere = ['/', '/docs/', '/plants', '/nowhere', '/garden', '/garden/', '/garden/plants/1/leaves']
  for (const url of nowhere) {
    const answer = await app.inject(url)
    expect([url, answer.statusCode, answer.json()]).toEqual([url, 404, { foreign: 'nothing' }])
  }
  await ask('GET', '/garden/plants')
  expect(seen.at(-1)).toBe('GET /garden/plants')
})

test("a hook of the service's own that refuses keeps its status, in the one shape", async () => {
  app = fastify()
  app.addHook('onRequest', async () => {
    throw Object.assign(new Error('slow down'), { statusCode: 429, headers: { 'retry-after': '7' } })
  })
  mount()
  const answer = await ask('GET', '/garden/plants')
  expect([answer.statusCode, answer.json()]).toEqual([429, { error: 42900, message: 'slow down' }])
})

describe('official plugins around it', () => {
  const answered = async (more: object = {}) => {
    const answer = await app.inject({ url: '/garden/plants', headers: { authorization }, ...more })
    expect(answer.headers['content-type']).toBe('application/json')
    expect(Object.keys(answer.json())).toEqual(['error', 'message'])
    return [answer.statusCode, answer.json().error]
  }

  test('@fastify/jwt refuses with 401', async () => {
    app = fastify()
    await app.register(jwt, { secret: 'long enough for a test' })
    app.addHook('onRequest', request => request.jwtVerify())
    mount()
    expect(await answered()).toEqual([401, 40100])
    expect(await answered({ headers: {} })).toEqual([401, 40100])
    const expired = app.jwt.sign({ iat: 0 }, { expiresIn: '1s' })
    expect(await answered({ headers: { authorization: `Bearer ${expired}` } })).toEqual([401, 40100])
  })

  test('@fastify/basic-auth refuses with 401 and its own challenge', async () => {
    app = fastify()
    await app.register(basicAuth, { validate: async () => new Error('nobody'), authenticate: true })
    app.addHook('onRequest', app.basicAuth)
    mount()
    for (const headers of [{}, { authorization: `Basic ${btoa('a:b')}` }, { authorization }]) {
      expect(await answered({ headers })).toEqual([401, 40100])
    }
    const { headers } = await app.inject('/garden/plants')
    expect(headers['www-authenticate']).toMatch(/^Basic/)
  })

  test('@fastify/under-pressure refuses with 503 and Retry-After', async () => {
    app = fastify()
    await app.register(underPressure, {
      healthCheck: async () => false,
      healthCheckInterval: 60_000,
      retryAfter: 7,
    })
    mount()
    expect(await answered()).toEqual([503, 50300])
    expect((await app.inject('/garden/plants')).headers['retry-after']).toBe('7')
  })

  test('@fastify/rate-limit refuses with 429', async () => {
    app = fastify()
    await app.register(rateLimit, { max: 1 })
    mount()
    await ask('GET', '/garden/plants')
    expect(await answered()).toEqual([429, 42900])
  })

  test('@fastify/swagger describes the operations, in a document that is valid', async () => {
    app = fastify()
    await app.register(swagger, {
      openapi: { openapi: '3.1.0', info: { title: 'Garden', version: '1.0.0' } },
    })
    mount()
    await app.ready()
    const document = app.swagger() as { paths: Record<string, object> }
    const described = Object.entries(document.paths).map(([path, item]) => [path, Object.keys(item)])
    expect(Object.fromEntries(described)).toEqual({
      '/garden/plants': ['post', 'get'],
      '/garden/plants/{id}': ['get', 'put', 'delete'],
      '/garden/plants/batch': ['post'],
    })
    expect(await lint(JSON.stringify(document), 'spectral-openapi.yaml')).toMatch(/^No results/)
  })
})

test('a batch is read as it arrives, with the limits of the service for a line', async () => {
  app = fastify({ bodyLimit: 100 })
  mount()
  const post = (lines: readonly string[]) =>
    app.inject({
      method: 'POST',
      url: '/garden/plants/batch',
      headers: { authorization, 'content-type': 'application/x-ndjson' },
      body: Readable.from(lines),
    })
  const lines = Array.from({ length: 2_000 }, (_, n) => `{"id":${n},"name":"n"}\n`)
  const answer = await post([...lines, 'x\n'])
  expect([answer.statusCode, answer.json()]).toMatchObject([
    200,
    { created: 2_000, existing: 0, refused: 1, faults: [{ line: 2_001, error: 40001 }] },
  ])
  const tooLong = await post([...lines, `{"id":1,"name":"${'n'.repeat(100)}"}`])
  expect([tooLong.statusCode, tooLong.json()]).toEqual([413, errorBody(41301)])
})

test('a batch is read from HTTP/2 too', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  const served = fastify({ http2: true })
  served.register(storeRoutes, { plants: newPlants(), gate })
  const session = connectHttp2(await served.listen({ host: '127.0.0.1', port: 0 }))
  const ask = async (lines: readonly string[]) => {
    const headers = { authorization, 'content-type': 'application/x-ndjson' }
    const stream = session.request({ ':method': 'POST', ':path': '/plants/batch', ...headers })
    for (const line of lines) stream.write(line)
    stream.end()
    const [[answered], body] = await Promise.all([once(stream, 'response'), text(stream)])
    return [answered[':status'], JSON.parse(body)]
  }
  const lines = Array.from({ length: 2_000 }, (_, n) => `{"id":${n},"name":"n"}\n`)
  expect(await ask(lines)).toMatchObject([200, { created: 2_000 }])
  expect(await ask([...lines, 'x'.repeat(2 ** 20 + 2)])).toEqual([413, errorBody(41301)])
  // HTTP/2 has no field Connection, and Node warns of one.
  process.off('warning', note)
  expect(warnings).toEqual([])
  session.close()
  await served.close()
})

test.each(['FST_ERR_SEND_UNDEFINED_ERR', 'FST_ERR_REP_INVALID_PAYLOAD_TYPE'])(
  'a defect that Fastify reports as %s is not taken for a refusal',
  async code => {
    app = fastify()
    app.addHook('preHandler', async () => {
      throw Object.assign(new Error('inside'), { code, statusCode: 500 })
    })
    mount()
    const answer = await ask('GET', '/garden/plants')
    expect([answer.statusCode, answer.json()]).toEqual([500, errorBody(50001)])
    expect(answer.body).not.toContain('inside')
  },
)

test("hooks of the service's own that wrap or read answers do not turn a change into a failure", async () => {
  app = fastify()
  const sent: unknown[] = []
  app.addHook('preSerialization', async (_request, _reply, payload) => ({ data: payload }))
  app.addHook('onSend', async (_request, _reply, payload) => {
    sent.push(payload)
  })
  mount()
  const outcome = async (...asked: Parameters<typeof ask>) => {
    const { statusCode, body } = await ask(...asked)
    return [statusCode, body]
  }
  expect(await outcome('POST', '/garden/plants', '{"id":1,"name":"n"}')).toEqual([200, '{"name":"n"}'])
  expect(await outcome('PUT', '/garden/plants/1', '{"name":"m"}')).toEqual([200, '{"name":"m"}'])
  expect(await outcome('GET', '/garden/plants/1')).toEqual([200, '{"id":1,"name":"m"}'])
  expect(await outcome('GET', '/garden/plants')).toEqual([200, '[{"id":1,"name":"m"}]'])
  expect(sent).toEqual(['{"name":"n"}', '{"name":"m"}', '{"id":1,"name":"m"}', '[{"id":1,"name":"m"}]'])
  expect(await outcome('DELETE', '/garden/plants/1')).toEqual([204, ''])
  expect(await outcome('DELETE', '/garden/plants/1')).toEqual([
    404,
    expect.stringMatching(/^\{"error":40402,/),
  ])
})

test.each([
  ['/t/:tenant', '/t/flora/plants', '/t/flora/plants'],
  ['/t/:tenant', '/t/fl%2Fora%3F/plants', '/t/fl%2Fora%3F/plants'],
  ['/t/:tenant', '/t/<b>/plants', '/t/%3Cb%3E/plants'],
  ['/t/:tenant/:bed', '/t/flora/7/plants', '/t/flora/7/plants'],
  ['', '/plants', '/plants'],
  ['', 'http://plants.example/plants', '/plants'],
  ['', '//plants', '/plants'],
  ['/garden', '/garden/plants/', '/garden/plants/'],
])('under the prefix %j, the page after that at %s is at %s', async (prefix, path, target) => {
  const routerOptions = { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true }
  app = fastify({ routerOptions })
  // They stood one level higher once.
  if (!('routerOptions' in app.initialConfig)) app = fastify(routerOptions)
  const plants = newPlants()
  for (const id of [1n, 2n]) await plants.create(parsePlant({ id, name: 'n' }))
  app.register(storeRoutes, { prefix, plants, gate })
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  const { hostname, port } = new URL(origin)
  const get = async (path: string) => {
    const asked = request({ hostname, port, path, headers: { authorization } }).end()
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    const { link } = answer.headers
    return { link, body: await text(answer) }
  }
  const { link } = await get(`${path}?limit=1`)
  expect(link).toBe(`<${target}?limit=1&after=1>; rel="next"`)
  expect((await get(`${target}?limit=1&after=1`)).body).toBe('[{"id":2,"name":"n"}]')
})

test('several stores stand side by side, each with its own gate', async () => {
  app = fastify()
  app.register(storeRoutes, { prefix: '/north', plants: newPlants(), gate })
  app.register(storeRoutes, { prefix: '/south', plants: newPlants(), gate: () => ({ name: 'anybody' }) })
  await ask('PUT', '/north/plants/1', '{"name":"north"}')
  expect((await app.inject('/south/plants')).body).toBe('[]')
  expect((await app.inject('/north/plants')).statusCode).toBe(401)
})

test('a service that makes no HEAD of its own still has it here', async () => {
  await startForeign({ exposeHeadRoutes: false })
  expect((await ask('HEAD', '/garden/plants')).statusCode).toBe(200)
  expect((await ask('HEAD', '/garden/plants/1')).statusCode).toBe(404)
})

test('a client that waits to be asked for a body is asked once', async () => {
  await startForeign()
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as { port: number }
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  const body = '{"id":1,"name":"n"}'
  const head = [
    'POST /garden/plants HTTP/1.1',
    'Host: h',
    `Authorization: ${authorization}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: close',
    'Expect: 100-continue',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  let received = ''
  for await (const chunk of socket) received += chunk
  expect(received.match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200'])
})
