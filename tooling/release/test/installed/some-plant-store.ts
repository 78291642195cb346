import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { storeRoutes } from '@plant-store/http'
import fastify from 'fastify'

/** A plant store for the client to talk to; stands for one that runs elsewhere. */
export async function startPlantStore() {
  const app = fastify()
  const plants = createPlantUseCases({ plants: createMemoryPlantRepository() })
  app.register(storeRoutes, { plants, gate: () => ({ name: 'anybody' }) })
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  return { baseUrl, token: 'any', close: () => app.close() }
}
