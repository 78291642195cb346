import { AccessError, type Gate } from '@plant-store/access'
import { createPlantStore } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { plantRoutes } from '@plant-store/http'
import { fastify } from 'fastify'

/** Run where `domain` and `access` are other copies than those that `http` has. */

const gate: Gate = async ({ token }) => {
  if (token !== 'secret') throw new AccessError('invalid-token', 'nobody we know')
  return { name: 'flora' }
}
const app = fastify()
app.register(plantRoutes, { store: createPlantStore({ plants: createMemoryPlantRepository() }), gate })

const body = '{"id":1,"name":"Fern"}'
for (const [method, url, token] of [
  ['POST', '/plants', 'secret'],
  ['POST', '/plants', 'secret'],
  ['DELETE', '/plants/2', 'secret'],
  ['POST', '/plants', 'guess'],
] as const) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await app.inject({ method, url, headers, body })
  console.log(answer.json().error ?? answer.statusCode)
}
await app.close()
