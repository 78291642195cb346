import { maxHeaderSize } from 'node:http'
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
import { answer, answerCounted, answerFailure } from '../answer/answer.ts'
import { RequestError } from '../answer/failures.ts'
import { writePlant, writeStoredPlant, writeStoredPlants } from '../answer/writers.ts'
import { createAuthentication } from '../auth/authenticate.ts'
import type { Throttle } from '../auth/throttle.ts'
import { defaultServerLimits } from '../limits.ts'
import { readJson } from '../request/body.ts'
import { checkBody } from '../request/door.ts'
import { countHeldBytes, type HeldBytesLimits, holdBody } from '../request/held-bytes.ts'
import { readInteger, readQuery } from '../request/query.ts'
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

  app.post<{ Body?: Buffer }>('/plants', async (request, reply) => {
    const plant = parsePlant(readJson(request.body))
    request.plantId = plant.id
    await store.create(plant)
    return answer(reply, writePlant, plant)
  })

  app.get('/plants', withHead, async (request, reply) => {
    held.checkRoom()
    const { limit, after, tag } = readQuery(request.raw.url as string, ['limit', 'after', 'tag'])
    const query = parsePlantPageQuery({ limit: readInteger(limit), after: readInteger(after), tag })
    const page = await store.list({ ...query, textBytesMax: limits.pageTextBytesMax })
    if (page.next !== undefined) reply.header('link', `<${nextPage(request, page.next, query)}>; rel="next"`)
    return answerCounted(reply, writeStoredPlants, page.plants as Plant[], held)
  })

  app.get<PlantPath>('/plants/:id', withHead, async (request, reply) => {
    held.checkRoom()
    return answerCounted(reply, writeStoredPlant, await store.find(readId(request)), held)
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

/** The other header fields of an answer that has a link. */
const answerFieldsBytesMax = 1024

/**
 * Returns a reference that starts at the root, as RFC 8288 allows: it stays right behind any proxy that keeps the path.
 *
 * @throws RequestError `headers-too-large` when the server would refuse the same client's request for it, or a client
 *   with the server's limit could not read the answer
 */
function nextPage(
  { raw, server }: FastifyRequest,
  after: NonNullable<PlantPage['next']>,
  { limit, tag }: { limit: number; tag?: string },
): string {
  const [, path = ''] = /^(?:https?:\/\/[^/]*)?\/*(\/[^?#]*)/i.exec(raw.url as string) ?? []
  const filter = tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`
  const target = `${path.replace(/[<>]/g, encodeURIComponent)}?limit=${limit}&after=${after}${filter}`
  // What Node counts. Its servers have this, though its documentation doesn't say so.
  const { maxHeaderSize: headerBytesMax = maxHeaderSize } = server.server as { maxHeaderSize?: number }
  const fieldsBytes = raw.rawHeaders.reduce((bytes, text) => bytes + text.length, 0)
  if (target.length + Math.max(fieldsBytes, answerFieldsBytesMax) < headerBytesMax) return target
  throw new RequestError(
    'headers-too-large',
    'a request for the next page would be too large: ask for a shorter tag, or for more plants a page',
  )
}
