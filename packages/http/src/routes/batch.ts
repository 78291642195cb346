import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CreateOutcome, PlantStore } from '@plant-store/domain'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { answer } from '../answer/answer.ts'
import { about, aroundBody, aroundRequest, failing, operation } from '../answer/description.ts'
import * as wire from '../answer/schemas.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import { lineCounts } from '../context.ts'
import { faultsMax, type ServerLimits } from '../limits.ts'
import { bodyOf } from '../request/body.ts'
import { readLines } from '../request/lines.ts'
import { readAnnounce } from '../request/query.ts'
import { type Chunk, faultsOf, type LineFault, readChunks } from './batch-chunks.ts'
import { failOtherMethods } from './other-methods.ts'

const mediaType = 'application/x-ndjson'

/** The bytes of chunks in progress, of all batches of this server: enough for many in one transaction. */
const underWaySizeMax = 1536 * 1024

interface BatchRouteNeeds {
  readonly store: PlantStore
  readonly authenticate: Authenticate
  /** The time for each line to arrive, and for batches to arrive once the server stops. */
  readonly limits: Pick<ServerLimits, 'requestTimeoutMs' | 'batchRequestDrainMs'>
}

/** Adds POST /plants/batch: any number of plants in one request, in constant memory. */
export function addBatchRoute(app: FastifyInstance, needs: BatchRouteNeeds): void {
  const ending = new AbortController()
  app.addHook('preClose', done => {
    setTimeout(() => ending.abort(), needs.limits.batchRequestDrainMs).unref()
    done()
  })
  const createLines = createLinesWith(needs, ending.signal)
  app.addContentTypeParser(mediaType, (_request, body, parsed) => parsed(null, body))
  app.post<{ Body?: Readable }>(
    '/plants/batch',
    {
      config: { streamedMediaType: mediaType },
      schema: operation({
        operationId: 'createPlants',
        tags: ['plants'],
        summary: 'Add many plants',
        description:
          'Creates the plant of each line, or lists why not. Counted plants are on disk. Sending the same lines again changes nothing, also after a request that failed as a whole.',
        querystring: Type.Object({
          announce: Type.Optional(
            Type.Boolean({ description: 'Whether the plants are announced to webhooks', default: true }),
          ),
        }),
        body: {
          description: 'One NewPlant a line, any number of lines. Empty lines are ignored',
          content: { [mediaType]: { schema: wire.PlantLines } },
        },
        response: {
          200: about('The outcome of the lines', wire.CreatedPlants),
          ...failing(...aroundRequest, ...aroundBody),
        },
      }),
    },
    async (request, reply) => answer(reply, await createLines(request)),
  )
  failOtherMethods(app, '/plants/batch', ['POST'])
}

function createLinesWith({ store, authenticate, limits }: BatchRouteNeeds, ending: AbortSignal) {
  const underWay = createSemaphore(underWaySizeMax)

  return async (request: FastifyRequest<{ Body?: Readable }>) => {
    const announce = readAnnounce(request.raw.url as string)
    const counts = { created: 0, existing: 0, refused: 0 }
    const faults: LineFault[] = []
    const create = async (chunk: Chunk) => {
      try {
        return await store.createAll(chunk.plants, { announce })
      } finally {
        underWay.release(chunk.size)
      }
    }
    const count = (chunk: Chunk, outcomes: readonly CreateOutcome[]) => {
      const refused = faultsOf(chunk, outcomes)
      counts.created += outcomes.filter(outcome => outcome === 'inserted').length
      counts.existing += outcomes.filter(outcome => outcome === 'already-there').length
      counts.refused += refused.length
      faults.push(...refused.slice(0, faultsMax - faults.length))
    }

    const body = request.body && bodyOf(request.body)
    const lines = {
      lineBytesMax: request.routeOptions.bodyLimit,
      lineTimeoutMs: limits.requestTimeoutMs,
      ending,
    }
    const pieces = body === undefined ? [] : readLines(body, lines)
    let counted = Promise.resolve()
    let isFailed = false
    try {
      for await (const chunk of readChunks(pieces)) {
        // A token may expire or be revoked during the request.
        await new Promise<void>((resolve, reject) =>
          authenticate(request, 'plants:write', failure => (failure ? reject(failure) : resolve())),
        )
        request[lineCounts] = counts
        if (isFailed) break
        await underWay.acquire(chunk.size)
        counted = Promise.all([create(chunk), counted]).then(([outcomes]) => count(chunk, outcomes))
        counted.catch(() => {
          isFailed = true
        })
        // Lets other requests of this thread run.
        await nextTurn()
      }
    } finally {
      await counted.catch(() => {})
    }
    await counted
    return { ...counts, faults }
  }
}

/** Admits in order of arrival what fits, or is alone. */
function createSemaphore(sizeMax: number) {
  const waiting: { readonly size: number; readonly admit: () => void }[] = []
  let taken = 0
  const admitAll = () => {
    for (const { size, admit } of [...waiting]) {
      if (taken > 0 && taken + size > sizeMax) return
      waiting.shift()
      taken += size
      admit()
    }
  }
  return {
    async acquire(size: number): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.push({ size, admit: resolve })
      admitAll()
      await promise
    },
    release(size: number): void {
      taken -= size
      admitAll()
    },
  }
}
