import {
  isMet,
  type PlantId,
  type PlantUseCases,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { answer, answerNotModified } from '../answer/answer.ts'
import { type Budget, countedBytesMin } from '../answer/budget.ts'
import { RequestError } from '../answer/failures.ts'
import { answeredPlantId } from '../answered-request.ts'
import { operations } from '../interface/operations.ts'
import { StoredPlant } from '../interface/schemas.ts'
import { readBody, readJson } from '../request/body.ts'
import { failOtherMethods } from '../request/checks.ts'
import { readCondition, toEntityTag } from '../request/conditions.ts'
import { nextPage, readInteger, readLimit, readQuery } from '../request/query.ts'

interface PlantRoutesNeeds {
  readonly store: PlantUseCases
  readonly answerBudget: Budget
  readonly pageTextBytesMax: number
}

export function addPlantRoutes(
  app: FastifyInstance,
  { store, answerBudget, pageTextBytesMax }: PlantRoutesNeeds,
): void {
  // Bodies reach the routes as bytes.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', readBody)

  app.post<{ Body?: Buffer }>('/plants', { schema: operations.createPlant }, async (request, reply) => {
    const plant = parsePlant(readJsonBody(request.body))
    request[answeredPlantId] = plant.id
    await store.create(plant)
    return answer(reply, plant)
  })

  // `exposeHeadRoute` makes HEAD independent of the host's settings.
  app.get('/plants', { exposeHeadRoute: true, schema: operations.listPlants }, async (request, reply) => {
    const { limit, after, tag } = readQuery(request.raw.url as string, ['limit', 'after', 'tag'])
    const query = parsePlantPageQuery({ limit: readLimit(limit), after: readInteger(after), tag })
    // A page becomes shorter rather than refused.
    const textBytesMax = Math.min(pageTextBytesMax, Math.max(countedBytesMin, answerBudget.free() / 2))
    if (textBytesMax > countedBytesMin) answerBudget.hold(reply.raw, textBytesMax)
    const page = await store.list({ ...query, textBytesMax })
    if (page.next !== undefined) reply.header('link', nextPage(request, page.next, query))
    return answer(reply, page.plants, answerBudget)
  })

  const readPlant = { exposeHeadRoute: true, schema: operations.readPlant }
  app.get<PlantPath>('/plants/:id', readPlant, async (request, reply) => {
    const id = readId(request)
    const { matches, differs } = readCondition(request) ?? {}
    const { plant, version } = await store.find(id, { matches })
    reply.header('etag', toEntityTag(version))
    return isMet({ differs }, version)
      ? answer(reply, plant, answerBudget)
      : answerNotModified(request, reply)
  })

  const replacePlant = { schema: operations.replacePlant }
  app.put<PlantPath & { Body?: Buffer }>('/plants/:id', replacePlant, async (request, reply) => {
    const id = readId(request)
    const sent = readJsonBody(request.body)
    const plant = parsePlant(sent, id)
    const version = await store.replace(plant, readCondition(request))
    // Only if the plant was stored as it was sent (RFC 9110, 9.3.4).
    if (Object.keys(sent as object).every(name => Object.hasOwn(StoredPlant.properties, name)))
      reply.header('etag', toEntityTag(version))
    return answer(reply, plant)
  })

  app.delete<PlantPath>('/plants/:id', { schema: operations.removePlant }, async (request, reply) => {
    await store.remove(readId(request), readCondition(request))
    return reply.code(204).send()
  })

  failOtherMethods(app, ['GET', 'HEAD', 'POST'], { url: '/plants' })
  failOtherMethods(app, ['GET', 'HEAD', 'PUT', 'DELETE'], { url: '/plants/:id' })
}

/** @throws RequestError `bad-json` */
function readJsonBody(body: Buffer | undefined): unknown {
  if (body === undefined || body.length === 0) throw new RequestError('bad-json', 'the request has no body')
  return readJson(body, 'body')
}

interface PlantPath {
  Params: { id: string }
}

function readId(request: FastifyRequest<PlantPath>): PlantId {
  const id = parsePlantId(readInteger(request.params.id))
  request[answeredPlantId] = id
  return id
}
