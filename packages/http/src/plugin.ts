import type { Gate } from '@plant-store/access'
import type { PlantStore } from '@plant-store/domain'
import type { FastifyPluginCallback } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import { answerBySchemas } from './answer/answer.ts'
import { createAuthentication } from './auth/authenticate.ts'
import type { Throttle } from './auth/throttle.ts'
import { defaultServerLimits, type ServerLimits } from './limits.ts'
import { openDoor } from './request/door.ts'
import { countHeldBytes } from './request/held-bytes.ts'
import { addBatchRoute } from './routes/batch-route.ts'
import { addPlantRoutes } from './routes/plant-routes.ts'

export interface PlantRoutesOptions {
  readonly store: PlantStore
  readonly gate: Gate
  /** Limits wrong tokens, such as one of {@link createThrottle}. By default there is no limit. */
  readonly throttle?: Throttle
  /** By default {@link defaultServerLimits}. */
  readonly limits?: Partial<Pick<ServerLimits, 'heldBytesMax' | 'pageTextBytesMax' | 'requestTimeoutMs'>>
}

const addRoutes: FastifyPluginCallback<PlantRoutesOptions> = (app, options, done) => {
  const limits = { ...defaultServerLimits, ...options.limits }
  const { store, gate, throttle } = options
  const held = countHeldBytes(limits)
  const authenticate = createAuthentication(gate, throttle)
  answerBySchemas(app)
  openDoor(app, { authenticate, held })
  addPlantRoutes(app, { store, held, pageTextBytesMax: limits.pageTextBytesMax })
  addBatchRoute(app, { store, authenticate, held, lineTimeoutMs: limits.requestTimeoutMs })
  done()
}

/** The operations on plants as a plugin for Fastify 5. It brings its own parsing, authentication and failures. */
export const plantRoutes = fastifyPlugin(addRoutes, {
  name: '@plant-store/http',
  fastify: '5.x',
  // Hooks and parsers stay inside the plugin.
  encapsulate: true,
})
