import type { Gate } from '@plant-store/access'
import type { PlantUseCases } from '@plant-store/domain'
import type { FastifyPluginCallback } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import { answerBySchemas } from './answer/answer.ts'
import { createBudget } from './answer/budget.ts'
import { defaultServerLimits, type ServerLimits } from './limits.ts'
import { createAuthentication } from './request/authenticate.ts'
import { checkRequests } from './request/checks.ts'
import type { Throttle } from './request/wrong-tokens.ts'
import { addBatchRoute } from './routes/batch.ts'
import { addPlantRoutes } from './routes/plants.ts'

export interface PlantRoutesOptions {
  readonly store: PlantUseCases
  readonly gate: Gate
  /** Limits wrong tokens, such as one of {@link createThrottle}. By default there is no limit. */
  readonly throttle?: Throttle
  /** By default {@link defaultServerLimits}. */
  readonly limits?: Partial<
    Pick<ServerLimits, 'heldBytesMax' | 'pageTextBytesMax' | 'requestTimeoutMs' | 'batchRequestDrainMs'>
  >
}

const addToHost: FastifyPluginCallback<PlantRoutesOptions> = (app, options, done) => {
  const limits = { ...defaultServerLimits, ...options.limits }
  const { store, gate, throttle } = options
  const authenticate = createAuthentication(gate, throttle)
  // Apart, so that slow uploads do not use up the memory for answers.
  const bodyBudget = createBudget(limits.heldBytesMax / 2)
  const answerBudget = createBudget(limits.heldBytesMax / 2)
  answerBySchemas(app)
  checkRequests(app, authenticate, bodyBudget)
  addPlantRoutes(app, { store, answerBudget, pageTextBytesMax: limits.pageTextBytesMax })
  addBatchRoute(app, { store, authenticate, limits })
  done()
}

/** The operations on plants as a plugin for Fastify 5. It brings its own parsing, authentication and failures. */
export const plantRoutes = fastifyPlugin(addToHost, {
  name: '@plant-store/http',
  fastify: '5.x',
  // Hooks and parsers stay inside the plugin.
  encapsulate: true,
})
