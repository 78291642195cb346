import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { createThrottle, storeRoutes, tokenName } from '@plant-store/http'
import { createJwtGate } from '@plant-store/jwt'
import { type FastifyInstance, fastify } from 'fastify'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { audience, makeKey, provider, type SigningKey, sign } from './provider.ts'

/** The gate in a service of others. */

let app: FastifyInstance
let key: SigningKey
const names: unknown[] = []
beforeEach(async () => {
  key = await makeKey('first')
  provider.keys = [key]
  provider.answer = undefined
  await provider.start(0)
  app = fastify()
  names.splice(0)
  app.addHook('onResponse', async request => void names.push(request[tokenName]))
})
afterEach(async () => {
  await app.close()
  await provider.stop()
})

function mount() {
  const { issuer, jwksUrl } = provider
  app.register(storeRoutes, {
    prefix: '/garden',
    plants: createPlantUseCases({ plants: createMemoryPlantRepository() }),
    gate: createJwtGate({ issuer, audience, jwksUrl }),
    throttle: createThrottle(2),
  })
}

async function create(token: string) {
  const { statusCode, headers, body } = await app.inject({
    method: 'POST',
    url: '/garden/plants',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: '{"id": 1, "name": "Ficus"}',
  })
  return { status: statusCode, error: JSON.parse(body).error, headers }
}

test('a JWT with the scope creates a plant, and hooks see its subject', async () => {
  mount()
  expect(await create(await sign(key))).toMatchObject({ status: 200 })
  expect(names).toEqual(['flora'])
})

test('a JWT without the scope, and one that is wrong, get the challenges of RFC 6750', async () => {
  mount()
  const lacking = await create(await sign(key, { permissions: ['plants:read'] }))
  expect(lacking).toMatchObject({ status: 403, error: 40301 })
  expect(lacking.headers['www-authenticate']).toMatch(/error="insufficient_scope".*scope="plants:write"/)
  const expired = await create(await sign(key, { exp: 1 }))
  expect(expired).toMatchObject({ status: 401, error: 40102 })
  expect(expired.headers['www-authenticate']).toMatch(
    /error="invalid_token", error_description="the access token has expired"/,
  )
  expect(names).toEqual([undefined, undefined])
})

test('wrong JWTs are counted, and good ones are let in all the same', async () => {
  mount()
  const forged = await sign(await makeKey('first'))
  const answers = [await create(forged), await create(forged), await create(forged)]
  expect(answers.map(({ error }) => error)).toEqual([40102, 40102, 42901])
  expect(await create(await sign(key))).toMatchObject({ status: 200 })
})
