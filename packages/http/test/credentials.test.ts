import type { Gate } from '@plant-store/access'
import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { storeRoutes } from '@plant-store/http'
import { fastify } from 'fastify'
import { expect, test } from 'vitest'
import { startMemoryService } from './memory-service.ts'

const store = createPlantUseCases({ plants: createMemoryPlantRepository() })

test('a gate sees the token, and the header fields by names in lower case', async () => {
  const seen: unknown[] = []
  const gate: Gate = ({ token, headers }, scope) => {
    seen.push([token, headers['x-tenant'], scope])
    return { name: 'flora' }
  }
  await using service = await startMemoryService({ gate })
  await fetch(`${service.url}/plants`, { headers: { authorization: 'bearer a.b', 'X-Tenant': 'north' } })
  await fetch(`${service.url}/plants/1`, { method: 'DELETE' })
  const app = fastify()
  app.register(storeRoutes, { plants: store, gate })
  await app.inject({ url: '/plants', headers: { 'X-Tenant': 'south' } })
  expect(seen).toEqual([
    ['a.b', 'north', 'plants:read'],
    [undefined, undefined, 'plants:write'],
    [undefined, 'south', 'plants:read'],
  ])
})
