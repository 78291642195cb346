import { AccessError, type Gate } from '@plant-store/access'
import { createPlantStore, DomainError, type PlantRepository, parsePlantId } from '@plant-store/domain'
import { plantRoutes, tokenName } from '@plant-store/http'
import fastify from 'fastify'
import { labelOf } from './label.ts'

/** The nursery's own service: labels of its own, and the operations on plants under `/seedlings`. */
export function createNursery(seedlings: PlantRepository, gardeners: ReadonlyMap<string, string>) {
  const store = createPlantStore({ plants: seedlings })

  // Its own way to check tokens: a gardener may do everything.
  const gate: Gate = ({ token }) => {
    if (token === undefined) throw new AccessError('no-token', 'who are you?')
    const name = gardeners.get(token)
    if (name === undefined) throw new AccessError('invalid-token', 'no gardener of ours')
    return { name }
  }

  const app = fastify()
  app.addHook('onSend', async (request, reply) => {
    const gardener: string | undefined = request[tokenName]
    if (gardener !== undefined) reply.header('x-gardener', gardener)
  })
  app.register(plantRoutes, { prefix: '/seedlings', store, gate })
  app.get<{ Params: { id: string } }>('/labels/:id', async ({ params }, reply) => {
    try {
      return labelOf((await store.find(parsePlantId(BigInt(params.id)))).plant)
    } catch (error) {
      if (error instanceof DomainError && error.code === 'plant-not-found') {
        return reply.code(404).send({ nursery: error.message })
      }
      throw error
    }
  })
  return app
}
