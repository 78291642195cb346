import type { FastifyPluginCallback } from 'fastify'
import { fastifyPlugin } from 'fastify-plugin'
import type { AnswerFailure } from './answer/answer.ts'
import { answerFailure, entities, type UseCases } from './entities.ts'
import { addRoutes, createPipeline, type Entity, type PipelineOptions } from './pipeline.ts'

/** The use cases of each entity that is to be mounted, by its name. */
export type StoreRoutesOptions = PipelineOptions & Partial<UseCases>

export function createStoreRoutes<Options extends PipelineOptions>(
  known: Readonly<Record<string, Entity>>,
  answerFailure: AnswerFailure,
): FastifyPluginCallback<Options> {
  const addToHost: FastifyPluginCallback<Options> = (app, options, done) => {
    const pipeline = createPipeline(app, options, answerFailure)
    for (const [name, entity] of Object.entries(known)) {
      const useCases = options[name as keyof Options]
      if (useCases !== undefined) addRoutes(app, entity, entity.handlers(useCases, pipeline), pipeline)
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
export const storeRoutes = createStoreRoutes<StoreRoutesOptions>(entities, answerFailure)
