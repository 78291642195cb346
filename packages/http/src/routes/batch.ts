import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type CreateOutcome, idTaken, type Plant, type PlantUseCases, parsePlant } from '@plant-store/domain'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { answer } from '../answer/answer.ts'
import { toFailure } from '../answer/failures.ts'
import { lineCounts } from '../answered-request.ts'
import { linesMediaType, operations } from '../interface/operations.ts'
import { faultsMax, type ServerLimits } from '../limits.ts'
import type { Authenticate } from '../request/authenticate.ts'
import { bodyOf, readJson } from '../request/body.ts'
import { failOtherMethods } from '../request/checks.ts'
import { isEmptyLine, readLines } from '../request/lines.ts'
import { readAnnounce } from '../request/query.ts'

/** The bytes of plants created together. Others wait a few milliseconds for them: in this thread, and at the store. */
const partSizeMax = 32 * 1024
/** The cost of a plant besides the bytes of its line. */
const plantSize = 192
/** The bytes of parts in progress, of all batches of this server: enough for many in one transaction. */
const underWaySizeMax = 1536 * 1024
/** For the message of a fault, which may quote the line. */
const messageLengthMax = 300

interface BatchRouteNeeds {
  readonly store: PlantUseCases
  readonly authenticate: Authenticate
  /** The time for each line to arrive, and for batches to arrive once the server stops. */
  readonly limits: Pick<ServerLimits, 'requestTimeoutMs' | 'batchRequestDrainMs'>
}

/** Adds POST /plants/batch: any number of plants in one request, in constant memory. */
export function addBatchRoute(app: FastifyInstance, { store, authenticate, limits }: BatchRouteNeeds): void {
  const ending = new AbortController()
  app.addHook('preClose', done => {
    setTimeout(() => ending.abort(), limits.batchRequestDrainMs).unref()
    done()
  })
  const underWay = createSemaphore(underWaySizeMax)

  const createLines = async (request: FastifyRequest<{ Body?: Readable }>) => {
    const announce = readAnnounce(request.raw.url as string)
    const counts = { created: 0, existing: 0, refused: 0 }
    const faults: LineFault[] = []
    const create = async (part: Part) => {
      try {
        return await store.createAll(part.plants, { announce })
      } finally {
        underWay.release(part.size)
      }
    }
    const count = (part: Part, outcomes: readonly CreateOutcome[]) => {
      const refused = faultsOf(part, outcomes)
      counts.created += outcomes.filter(outcome => outcome === 'inserted').length
      counts.existing += outcomes.filter(outcome => outcome === 'already-there').length
      counts.refused += refused.length
      faults.push(...refused.slice(0, faultsMax - faults.length))
    }

    const body = request.body && bodyOf(request.body)
    const lines = {
      lineBytesMax: request.routeOptions.bodyLimit,
      lineTimeoutMs: limits.requestTimeoutMs,
      ending: ending.signal,
    }
    const pieces = body === undefined ? [] : readLines(body, lines)
    let counted = Promise.resolve()
    let isFailed = false
    try {
      for await (const part of readParts(pieces)) {
        // A token may expire or be revoked during the request.
        await new Promise<void>((resolve, reject) =>
          authenticate(request, 'plants:write', failure => (failure ? reject(failure) : resolve())),
        )
        request[lineCounts] = counts
        if (isFailed) break
        await underWay.acquire(part.size)
        counted = Promise.all([create(part), counted]).then(([outcomes]) => count(part, outcomes))
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

  app.addContentTypeParser(linesMediaType, (_request, body, parsed) => parsed(null, body))
  app.post<{ Body?: Readable }>(
    '/plants/batch',
    { config: { streamedMediaType: linesMediaType }, schema: operations.createPlants },
    async (request, reply) => answer(reply, await createLines(request)),
  )
  failOtherMethods(app, ['POST'], { url: '/plants/batch' })
}

interface Part {
  readonly plants: Plant[]
  /** The line of each plant. */
  readonly lines: number[]
  readonly faults: LineFault[]
  size: number
}

interface LineFault {
  /** From 1. */
  readonly line: number
  readonly error: number
  readonly message: string
}

/** Yields the plants and faults of the lines, each judged as the body of POST /plants. */
export async function* readParts(
  pieces: AsyncIterable<Iterable<Buffer>> | readonly Iterable<Buffer>[],
): AsyncGenerator<Part, void, void> {
  const begin = (): Part => ({ plants: [], lines: [], faults: [], size: 0 })
  let part = begin()
  let line = 0
  for await (const piece of pieces) {
    for (const bytes of piece) {
      line++
      part.size += bytes.length + plantSize
      if (!isEmptyLine(bytes)) readPlant(bytes, line, part)
      if (part.size < partSizeMax) continue
      yield part
      part = begin()
    }
  }
  yield part
}

function readPlant(bytes: Buffer, line: number, { plants, lines, faults }: Part): void {
  try {
    plants.push(parsePlant(readJson(bytes, 'line')))
    lines.push(line)
  } catch (error) {
    faults.push(faultOf(line, error))
  }
}

/** Returns the faults of a part in order of line, given the outcomes of its plants. */
function faultsOf({ plants, lines, faults }: Part, outcomes: readonly CreateOutcome[]): readonly LineFault[] {
  const taken = outcomes.flatMap((outcome, index) =>
    outcome === 'id-taken' ? [faultOf(lines[index] as number, idTaken((plants[index] as Plant).id))] : [],
  )
  return [...faults, ...taken].sort((a, b) => a.line - b.line)
}

function faultOf(line: number, error: unknown): LineFault {
  const { body, isDefect } = toFailure(error)
  if (isDefect) throw error
  // A copy: a slice would keep the whole message in memory.
  return { line, error: body.error, message: Buffer.from(body.message.slice(0, messageLengthMax)).toString() }
}

/** Admits in order of arrival what fits, or is alone. */
function createSemaphore(sizeMax: number) {
  let taken = 0
  let released = Promise.withResolvers<void>()
  let admitted = Promise.resolve()
  return {
    async acquire(size: number): Promise<void> {
      const before = admitted
      const admit = async () => {
        await before
        while (taken > 0 && taken + size > sizeMax) await released.promise
        taken += size
      }
      admitted = admit()
      await admitted
    },
    release(size: number): void {
      taken -= size
      released.resolve()
      released = Promise.withResolvers()
    },
  }
}
