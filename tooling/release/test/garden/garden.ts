import jwt from '@fastify/jwt'
import swagger from '@fastify/swagger'
import {
  type AccessToken,
  createGate,
  hashToken,
  isAccessError,
  mintToken,
  type Scope,
} from '@plant-store/access'
import { createPlantUseCases, isDomainError, parsePlantId } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { createThrottle, describeInterface, storeRoutes, toFailure, tokenName } from '@plant-store/http'
import fastify from 'fastify'

/** A service of somebody else's, with ways of its own, that mounts the operations on plants under `/garden`. */

const plants = createPlantUseCases({ plants: createMemoryPlantRepository() })
const tokens = new Map<string, AccessToken>()
function mint(name: string, scopes: readonly Scope[], expiresAt?: Date) {
  const token = mintToken()
  tokens.set(hashToken(token), { name, scopes, createdAt: new Date(), ...(expiresAt && { expiresAt }) })
  return token
}
const all = ['plants:read', 'plants:write'] as const

const app = fastify({ ajv: { customOptions: { coerceTypes: 'array' } } })
app.decorateRequest('tokenName', 'gardener')
await app.register(jwt, { secret: "the garden's own tokens" })
await app.register(swagger, { openapi: { openapi: '3.1.0', info: { title: 'Garden', version: '7.0.0' } } })
const description = describeInterface(app)

app.setErrorHandler((error, _request, reply) => {
  if (!isDomainError(error) && !isAccessError(error)) return reply.code(418).send({ garden: `${error}` })
  const { status, headers, body } = toFailure(error)
  return reply.code(status).headers(headers).send({ garden: body.message, number: body.error })
})
app.setNotFoundHandler((_request, reply) => reply.code(404).send({ garden: 'nothing grows here' }))
app.setReplySerializer(payload => JSON.stringify({ garden: payload }))
app.addContentTypeParser('*', (_request, _payload, done) => done(null, 'anything'))
const admitted = new Set<string | undefined>()
app.addHook('onRequest', async request => {
  request.headers['x-garden'] = 'seen'
})
app.addHook('preSerialization', async (_request, _reply, payload) => ({ wrapped: payload }))
app.addHook('onSend', async (_request, reply) => {
  reply.header('x-garden', 'yes')
})
app.addHook('onResponse', async request => {
  admitted.add(request[tokenName])
})

app.register(storeRoutes, {
  prefix: '/garden',
  plants,
  gate: createGate({ tokens: { find: async hash => tokens.get(hash), markUsed: async () => {} } }),
  // The cases send wrong tokens by the hundred.
  throttle: createThrottle(1_000_000),
})
const document = () => ({ ...description(), info: { ...description().info, title: 'Garden' } })
// Texts, which the hooks and the serializer above leave alone.
const write = (value: unknown) => JSON.stringify(value)
app.get('/description', (_request, reply) => reply.serializer(String).send(write(document())))
app.get('/swagger', (_request, reply) => reply.serializer(String).send(write(app.swagger().paths)))
app.get('/admitted', (_request, reply) => reply.serializer(String).send(write([...admitted])))
app.get('/own', { onRequest: request => request.jwtVerify() }, async request => ({
  own: (request as unknown as { tokenName: string }).tokenName,
}))
app.get('/seven', () => plants.find(parsePlantId(7n)))
app.get('/broken', () => Promise.reject(new Error('the hose')))

const url = await app.listen({ host: '127.0.0.1', port: 0 })
console.log(
  JSON.stringify({
    url,
    own: app.jwt.sign({ sub: 'gardener' }),
    tokens: {
      full: mint('full', all),
      readOnly: mint('read only', ['plants:read']),
      writeOnly: mint('write only', ['plants:write']),
      expired: mint('expired', all, new Date(Date.now() - 1)),
      metrics: mint('metrics', ['metrics:read']),
    },
  }),
)
