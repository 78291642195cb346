import type { Gate } from '@plant-store/access'
import {
  type Plant,
  type PlantId,
  type PlantPage,
  type PlantStore,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import type { FastifyPluginCallback, FastifyRequest } from 'fastify'
import { answer, answerFailure } from './answers.ts'
import { createAuthentication } from './authentication.ts'
import { refuseOtherMethods } from './methods.ts'
import { checkEncoding, readInteger, readJson, readQuery } from './request.ts'
import type { Throttle } from './throttle.ts'
import { writePlant, writeStoredPlant, writeStoredPlants } from './writers.ts'

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
}

/** The operations on plants, as a plugin for any Fastify: it brings its own parsing, authentication and failures. */
export const plantRoutes: FastifyPluginCallback<PlantRoutesOptions> = (
  app,
  { store, gate, throttle },
  done,
) => {
  if (!app.hasRequestDecorator('tokenName')) app.decorateRequest('tokenName', '')
  app.decorateRequest('plantId', undefined)
  app.setErrorHandler(answerFailure)
  app.addHook('onRequest', createAuthentication(gate, throttle))
  app.addHook('preParsing', (request, reply, payload, parse) => {
    checkEncoding(request)
    // Our server leaves this to us (Node does it itself elsewhere), so that nobody is asked for a body before being admitted, or for too large a one.
    const { expect, 'content-length': length = '0' } = request.headers
    const isLeftToUs = expect !== undefined && app.server.listenerCount('checkContinue') > 0
    if (isLeftToUs && Number(length) <= request.routeOptions.bodyLimit) reply.raw.writeContinue()
    parse(null, payload)
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, parsed) =>
    parsed(null, body),
  )

  app.post<{ Body?: Buffer }>('/plants', async (request, reply) => {
    const plant = parsePlant(readJson(request.body))
    request.plantId = plant.id
    await store.create(plant)
    return answer(reply, writePlant, plant)
  })

  app.get('/plants', withHead, async (request, reply) => {
    const { limit, after, tag } = readQuery(request.raw.url as string, ['limit', 'after', 'tag'])
    const query = parsePlantPageQuery({ limit: readInteger(limit), after: readInteger(after), tag })
    const page = await store.list(query)
    if (page.next !== undefined) {
      reply.header('link', `<${app.prefix}/plants?${nextPage(page.next, query)}>; rel="next"`)
    }
    return answer(reply, writeStoredPlants, page.plants as Plant[])
  })

  app.get<PlantPath>('/plants/:id', withHead, async (request, reply) => {
    return answer(reply, writeStoredPlant, await store.find(readId(request)))
  })

  app.put<PlantPath & { Body?: Buffer }>('/plants/:id', async (request, reply) => {
    const id = readId(request)
    const plant = parsePlant(readJson(request.body), id)
    await store.replace(plant)
    return answer(reply, writePlant, plant)
  })

  app.delete<PlantPath>('/plants/:id', async (request, reply) => {
    await store.remove(readId(request))
    return reply.code(204).send()
  })

  refuseOtherMethods(app, '/plants', ['GET', 'HEAD', 'POST'])
  refuseOtherMethods(app, '/plants/:id', ['GET', 'HEAD', 'PUT', 'DELETE'])
  done()
}

/** Whatever the Fastify around does with its own. */
const withHead = { exposeHeadRoute: true }

interface PlantPath {
  Params: { id: string }
}

function readId(request: FastifyRequest<PlantPath>): PlantId {
  request.plantId = parsePlantId(readInteger(request.params.id))
  return request.plantId
}

/** RFC 8288 takes a reference that starts at the root: it stays right behind any proxy that keeps the path. */
function nextPage(
  after: NonNullable<PlantPage['next']>,
  { limit, tag }: { limit: number; tag?: string },
): string {
  const filter = tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`
  return `limit=${limit}&after=${after}${filter}`
}
