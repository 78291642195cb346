import type { Gate } from '@plant-store/access'
import {
  type PlantId,
  type PlantStore,
  pageLimitDefault,
  pageLimitMax,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import type { FastifyPluginCallback, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { answer, answerCounted, answerFailure } from '../answer/answer.ts'
import { about, failing, failingAroundBody, failingAroundRequest, operation } from '../answer/operation.ts'
import * as wire from '../answer/schemas.ts'
import { serializeBySchemas } from '../answer/serializers.ts'
import { createAuthentication } from '../auth/authenticate.ts'
import type { Throttle } from '../auth/throttle.ts'
import { defaultServerLimits } from '../limits.ts'
import { readJson } from '../request/body.ts'
import { checkBody } from '../request/door.ts'
import { countHeldBytes, type HeldBytesLimits, holdBody } from '../request/held-bytes.ts'
import { readInteger, readQuery } from '../request/query.ts'
import { nextPage, nextPageHeader } from './next-page.ts'
import { refuseOtherMethods } from './other-methods.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The plant that the request is about, once its id has been read. */
    plantId: PlantId | undefined
  }
}

export interface PlantRoutesOptions {
  readonly store: PlantStore
  readonly gate: Gate
  /** Turns away who sends many wrong tokens; nobody is unless it is given. */
  readonly throttle?: Throttle
  /** Those that aren't given are {@link defaultServerLimits}. */
  readonly limits?: Partial<HeldBytesLimits>
}

/** The operations on plants, as a plugin for any Fastify: it brings its own parsing, authentication and failures. */
export const plantRoutes: FastifyPluginCallback<PlantRoutesOptions> = (
  app,
  { store, gate, throttle, limits: given },
  done,
) => {
  const limits = { ...defaultServerLimits, ...given }
  const held = countHeldBytes(limits)
  if (!app.hasRequestDecorator('tokenName')) app.decorateRequest('tokenName', '')
  app.decorateRequest('plantId', undefined)
  app.setErrorHandler(answerFailure)
  serializeBySchemas(app)
  app.addHook('onRequest', createAuthentication(gate, throttle))
  app.addHook('preParsing', (request, reply, payload, parse) => {
    checkBody(request)
    // Our server leaves this to us (Node does it itself elsewhere), so that nobody is asked for a body before being admitted, or for too large a one.
    const { expect, 'content-length': length = '0' } = request.headers
    const isLeftToUs =
      expect !== undefined &&
      request.raw.httpVersion !== '1.0' &&
      app.server.listenerCount('checkContinue') > 0
    if (isLeftToUs && Number(length) <= request.routeOptions.bodyLimit) reply.raw.writeContinue()
    holdBody(request, reply.raw, held)
    parse(null, payload)
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, parsed) =>
    parsed(null, body),
  )

  app.post<{ Body?: Buffer }>(
    '/plants',
    {
      schema: operation({
        operationId: 'createPlant',
        tags: ['plants'],
        summary: 'Add a plant',
        description: 'Creates a new plant in the store',
        body: about('Plant to add to the store', wire.NewPlant),
        response: {
          200: about('plant response', wire.Plant),
          400: about('unexpected error', wire.FailureBody),
          ...failingAroundRequest,
          ...failingAroundBody,
        },
      }),
    },
    async (request, reply) => {
      const plant = parsePlant(readJson(request.body))
      request.plantId = plant.id
      await store.create(plant)
      return answer(reply, plant)
    },
  )

  app.get(
    '/plants',
    {
      // Whatever the Fastify around does with its own; also below.
      exposeHeadRoute: true,
      schema: operation({
        operationId: 'listPlants',
        tags: ['plants'],
        summary: 'List plants',
        description:
          'The plants in ascending numeric order of their ids, a page at a time; one of long texts ends before its limit.',
        querystring: Type.Object({
          limit: Type.Optional(Type.Integer({ description: 'At most so many plants', ...pageLimit })),
          after: Type.Optional(about('Only ids above this one', wire.PlantId)),
          tag: Type.Optional(Type.String({ description: 'Only plants with exactly this tag' })),
        }),
        response: {
          200: {
            ...about('A page of plants', Type.Array(wire.StoredPlant, { maxItems: pageLimitMax })),
            headers: { Link: nextPageHeader },
          },
          ...failing(400),
          ...failingAroundRequest,
        },
      }),
    },
    async (request, reply) => {
      held.checkRoom()
      const { limit, after, tag } = readQuery(request.raw.url as string, ['limit', 'after', 'tag'])
      const query = parsePlantPageQuery({ limit: readInteger(limit), after: readInteger(after), tag })
      const page = await store.list({ ...query, textBytesMax: limits.pageTextBytesMax })
      if (page.next !== undefined) reply.header('link', nextPage(request, page.next, query))
      return answerCounted(reply, page.plants, held)
    },
  )

  app.get<PlantPath>(
    '/plants/:id',
    {
      exposeHeadRoute: true,
      schema: operation({
        operationId: 'readPlant',
        tags: ['plants'],
        summary: 'Read a plant',
        params: plantPath,
        response: {
          200: about('The plant', wire.StoredPlant),
          ...failing(400, 404),
          ...failingAroundRequest,
        },
      }),
    },
    async (request, reply) => {
      held.checkRoom()
      return answerCounted(reply, await store.find(readId(request)), held)
    },
  )

  app.put<PlantPath & { Body?: Buffer }>(
    '/plants/:id',
    {
      schema: operation({
        operationId: 'replacePlant',
        tags: ['plants'],
        summary: 'Create or replace a plant',
        description:
          'Doing it twice is doing it once. An `id` in the body, where there is one, must be that of the path.',
        params: plantPath,
        body: about('The plant as it is to be', wire.Plant),
        response: {
          200: about('The plant as it is now', wire.Plant),
          ...failing(400),
          ...failingAroundRequest,
          ...failingAroundBody,
        },
      }),
    },
    async (request, reply) => {
      const plant = parsePlant(readJson(request.body), readId(request))
      await store.replace(plant)
      return answer(reply, plant)
    },
  )

  app.delete<PlantPath>(
    '/plants/:id',
    {
      schema: operation({
        operationId: 'removePlant',
        tags: ['plants'],
        summary: 'Remove a plant',
        params: plantPath,
        response: {
          204: about('The plant is removed', Type.Null()),
          ...failing(400, 404),
          ...failingAroundRequest,
          ...failingAroundBody,
        },
      }),
    },
    async (request, reply) => {
      await store.remove(readId(request))
      return reply.code(204).send()
    },
  )

  refuseOtherMethods(app, '/plants', ['GET', 'HEAD', 'POST'])
  refuseOtherMethods(app, '/plants/:id', ['GET', 'HEAD', 'PUT', 'DELETE'])
  done()
}

const pageLimit = { minimum: 1, maximum: pageLimitMax, default: pageLimitDefault }

const plantPath = Type.Object({ id: about('The id of the plant', wire.PlantId) })

interface PlantPath {
  Params: { id: string }
}

function readId(request: FastifyRequest<PlantPath>): PlantId {
  request.plantId = parsePlantId(readInteger(request.params.id))
  return request.plantId
}
