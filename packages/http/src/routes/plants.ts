import {
  isMet,
  type PlantId,
  type PlantStore,
  pageLimitDefault,
  pageLimitMax,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { answer, answerCounted, answerNotModified } from '../answer/answer.ts'
import { type Budget, countedBytesMin } from '../answer/budget.ts'
import { about, aroundBody, aroundRequest, failing, operation } from '../answer/description.ts'
import { RequestError } from '../answer/failures.ts'
import * as wire from '../answer/schemas.ts'
import { answeredPlantId } from '../context.ts'
import { readBody, readJson } from '../request/body.ts'
import { readCondition, toEntityTag } from '../request/conditions.ts'
import { nextPage, readInteger, readQuery } from '../request/query.ts'
import { failOtherMethods } from './other-methods.ts'

export function addPlantRoutes(
  app: FastifyInstance,
  {
    store,
    answerBudget,
    pageTextBytesMax,
  }: { store: PlantStore; answerBudget: Budget; pageTextBytesMax: number },
): void {
  // Bodies reach the routes as bytes.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', readBody)

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
          ...failing(...aroundRequest, ...aroundBody),
          400: { ...failing(400)[400], description: 'unexpected error' },
        },
      }),
    },
    async (request, reply) => {
      const plant = parsePlant(readJsonBody(request.body))
      request[answeredPlantId] = plant.id
      await store.create(plant)
      return answer(reply, plant)
    },
  )

  app.get(
    '/plants',
    {
      // Independent of the host's settings.
      exposeHeadRoute: true,
      schema: operation({
        operationId: 'listPlants',
        tags: ['plants'],
        summary: 'List plants',
        description:
          'Returns a page of plants in ascending numeric order of id. A page of long texts may end before its limit.',
        querystring: Type.Object({
          limit: Type.Optional(Type.Integer({ description: 'The largest number of plants', ...pageLimit })),
          after: Type.Optional(about('Only plants with a greater id', wire.PlantId)),
          tag: Type.Optional(Type.String({ description: 'Only plants with exactly this tag' })),
        }),
        response: {
          200: {
            ...about('A page of plants', Type.Array(wire.StoredPlant, { maxItems: pageLimitMax })),
            headers: { Link: nextPageHeader },
          },
          ...failing(...aroundRequest),
        },
      }),
    },
    async (request, reply) => {
      const { limit, after, tag } = readQuery(request.raw.url as string, ['limit', 'after', 'tag'])
      const query = parsePlantPageQuery({ limit: readInteger(limit), after: readInteger(after), tag })
      // A page becomes shorter rather than refused.
      const textBytesMax = Math.min(pageTextBytesMax, Math.max(countedBytesMin, answerBudget.free() / 2))
      if (textBytesMax > countedBytesMin) answerBudget.hold(reply.raw, textBytesMax)
      const page = await store.list({ ...query, textBytesMax })
      if (page.next !== undefined) reply.header('link', nextPage(request, page.next, query))
      return answerCounted(reply, page.plants, answerBudget)
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
        headers: conditionFields,
        response: {
          200: { ...about('The plant', wire.StoredPlant), headers: { ETag: entityTag } },
          304: {
            ...about('The plant still has an entity tag of If-None-Match', Type.Null()),
            headers: { ETag: entityTag },
          },
          ...failing(404, 412, ...aroundRequest),
        },
      }),
    },
    async (request, reply) => {
      const id = readId(request)
      const { matches, differs } = readCondition(request) ?? {}
      const { plant, version } = await store.find(id, { matches })
      reply.header('etag', toEntityTag(version))
      return isMet({ differs }, version)
        ? answerCounted(reply, plant, answerBudget)
        : answerNotModified(request, reply)
    },
  )

  app.put<PlantPath & { Body?: Buffer }>(
    '/plants/:id',
    {
      schema: operation({
        operationId: 'replacePlant',
        tags: ['plants'],
        summary: 'Create or replace a plant',
        description: 'Is idempotent. An `id` in the body must equal the id in the path.',
        params: plantPath,
        headers: conditionFields,
        body: about('The new plant', wire.Plant),
        response: {
          200: { ...about('The stored plant', wire.Plant), headers: { ETag: entityTag } },
          ...failing(412, ...aroundRequest, ...aroundBody),
        },
      }),
    },
    async (request, reply) => {
      const id = readId(request)
      const sent = readJsonBody(request.body)
      const plant = parsePlant(sent, id)
      const version = await store.replace(plant, readCondition(request))
      // Only if the plant was stored as it was sent (RFC 9110, 9.3.4).
      if (Object.keys(sent as object).every(name => Object.hasOwn(wire.StoredPlant.properties, name)))
        reply.header('etag', toEntityTag(version))
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
        headers: conditionFields,
        response: {
          204: about('The plant is removed', Type.Null()),
          ...failing(404, 412, ...aroundRequest, ...aroundBody),
        },
      }),
    },
    async (request, reply) => {
      await store.remove(readId(request), readCondition(request))
      return reply.code(204).send()
    },
  )

  failOtherMethods(app, '/plants', ['GET', 'HEAD', 'POST'])
  failOtherMethods(app, '/plants/:id', ['GET', 'HEAD', 'PUT', 'DELETE'])
}

/** @throws RequestError `bad-json` */
function readJsonBody(body: Buffer | undefined): unknown {
  if (body === undefined || body.length === 0) throw new RequestError('bad-json', 'the request has no body')
  return readJson(body, 'body')
}

const pageLimit = { minimum: 1, maximum: pageLimitMax, default: pageLimitDefault }

const nextPageHeader = about(
  'The next page (RFC 8288, rel="next"). Absent on the last page. If it would be too long, the answer is 431.',
  Type.String(),
)

const plantPath = Type.Object({ id: about('The id of the plant', wire.PlantId) })

const conditionFields = Type.Object({
  'If-Match': Type.Optional(
    Type.String({ description: 'The plant must have one of these entity tags, or with `*` must exist' }),
  ),
  'If-None-Match': Type.Optional(
    Type.String({ description: 'The plant must have none of these entity tags, or with `*` must not exist' }),
  ),
})

const entityTag = about('The version of the plant (RFC 9110, 8.8.3)', Type.String())

interface PlantPath {
  Params: { id: string }
}

function readId(request: FastifyRequest<PlantPath>): PlantId {
  const id = parsePlantId(readInteger(request.params.id))
  request[answeredPlantId] = id
  return id
}
