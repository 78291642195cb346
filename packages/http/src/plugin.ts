import type { Gate } from '@plant-store/access'
import type { FastifyPluginCallback } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import { entities, toFailure, type UseCases } from './entities.ts'
import type { ToFailure } from './errors/failures.ts'
import { defaultServerLimits } from './limits.ts'
import { type AnyEntity, addRoutes, createPipeline, type PipelineLimits } from './pipeline.ts'
import type { Throttle } from './request/wrong-tokens.ts'

interface PipelineRequirements {
  readonly gate: Gate
  /** Limits wrong tokens, such as one of {@link createThrottle}. By default there is no limit. */
  readonly throttle?: Throttle
  /** By default {@link defaultServerLimits}. */
  readonly limits?: Partial<PipelineLimits>
}

/** The use cases of each entity that is to be mounted, by its name. */
export type StoreRoutesOptions = PipelineRequirements & Partial<UseCases>

/** Returns a plugin for Fastify 5 with the operations on these entities. */
export function createStoreRoutes<Options extends PipelineRequirements>(
  known: Readonly<Record<string, AnyEntity>>,
  toFailure: ToFailure,
): FastifyPluginCallback<Options> {
  const addToHost: FastifyPluginCallback<Options> = (app, options, done) => {
    const limits = { ...defaultServerLimits, ...options.limits }
    const pipeline = createPipeline(app, { ...options, limits, toFailure })
    for (const [name, entity] of Object.entries(known)) {
      // Its own, by `Options`.
      const useCases = options[name as keyof Options] as never
      if (useCases !== undefined)
        addRoutes(app, entity, { handlers: entity.handlers(useCases, pipeline), pipeline })
    }
    done()
  }
  return fastifyPlugin(addToHost, {
    name: '@plant-store/http',
    fastify: '5.x',
    // Hooks and parsers stay inside the plugin.
    encapsulate: true,
  })
}

/**
 * The operations on the entities whose use cases it is given, as a plugin for Fastify 5. It brings its own parsing,
 * authentication and failures.
 */
export const storeRoutes = createStoreRoutes<StoreRoutesOptions>(entities, toFailure)
