import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { plantRoutes } from '@plant-store/http'
import fastify from 'fastify'

/** A plant store for the client to talk to; stands for one that runs elsewhere. */
export async function startPlantStore() {
  const app = fastify()
  const store = createPlantUseCases({ plants: createMemoryPlantRepository() })
  app.register(plantRoutes, { store, gate: () => ({ name: 'anybody' }) })
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 })
  return { baseUrl, token: 'any', close: () => app.close() }
}
