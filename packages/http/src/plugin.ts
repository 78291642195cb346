import type { Gate } from '@plant-store/access'
import type { PlantStore } from '@plant-store/domain'
import type { FastifyPluginCallback } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import { answerBySchemas } from './answer/answer.ts'
import type { Throttle } from './auth/throttle.ts'
import { defaultServerLimits, type ServerLimits } from './limits.ts'
import { openDoor } from './request/door.ts'
import { countHeldBytes } from './request/held-bytes.ts'
import { addPlantRoutes } from './routes/plant-routes.ts'

export interface PlantRoutesOptions {
  readonly store: PlantStore
  readonly gate: Gate
  /** Counts wrong tokens, such as one that {@link createThrottle} made; they are not counted unless given. */
  readonly throttle?: Throttle
  /** The others are {@link defaultServerLimits}. */
  readonly limits?: Partial<Pick<ServerLimits, 'heldBytesMax' | 'pageTextBytesMax'>>
}

const addRoutes: FastifyPluginCallback<PlantRoutesOptions> = (app, options, done) => {
  const limits = { ...defaultServerLimits, ...options.limits }
  const held = countHeldBytes(limits)
  answerBySchemas(app)
  openDoor(app, { gate: options.gate, throttle: options.throttle, held })
  addPlantRoutes(app, { store: options.store, held, pageTextBytesMax: limits.pageTextBytesMax })
  done()
}

/** The operations on plants, as a plugin for any Fastify 5: it brings its own parsing, authentication and failures. */
export const plantRoutes = fastifyPlugin(addRoutes, {
  name: '@plant-store/http',
  fastify: '5.x',
  // Nothing of it reaches the routes around it.
  encapsulate: true,
})
