import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type CreateOutcome,
  idTaken,
  type Plant,
  type PlantUseCases,
  parsePlant,
} from '@plant-store/domain'
import { toFailure } from '../errors/error-response.ts'
import { faultsMax } from '../limits.ts'
import type { AuthenticatedRequest } from '../request/authenticate.ts'
import { factsOf } from '../request/facts.ts'
import { readJson } from '../request/json.ts'
import { isEmptyLine, readLines } from '../request/lines.ts'
import type { Body } from '../wire/body.ts'
import type { PlantRoutesOptions } from './plant-routes.ts'

/**
 * How many bytes of a batch are created at once. Larger parts would delay the other
 * requests of this thread, and other changes, by more than a few milliseconds.
 */
const partSizeMax = 32 * 1024
/** The cost of a plant in addition to the bytes of its line. */
const plantSize = 192
/**
 * How many bytes all batches of this server may have in progress. One transaction can
 * take many parts of that size.
 */
const underWaySizeMax = 1536 * 1024
/** The longest message of a fault. It may quote the line. */
const messageLengthMax = 300

/**
 * Returns the handler of POST /plants/batch: any number of plants in one request, in
 * constant memory.
 */
export function createBatches({ authenticate, limits, ending }: PlantRoutesOptions) {
  const room = new PartRoom(underWaySizeMax)
  let batches = 0

  return async (
    request: AuthenticatedRequest,
    body: Body | undefined,
    useCases: PlantUseCases,
  ) => {
    batches++
    const place = batches
    const counts = { created: 0, existing: 0, refused: 0 }
    const faults: LineFault[] = []
    const create = async (part: Part, earlierParts: Promise<void>) => {
      const creating = useCases
        .createAll(part.plants.map(({ plant }) => plant))
        .finally(() => room.leave(part.size))
      const [outcomes] = await Promise.all([creating, earlierParts])
      const refused = faultsOf(part, outcomes)
      for (const outcome of outcomes) {
        counts.created += Number(outcome === 'inserted')
        counts.existing += Number(outcome === 'existing')
      }
      counts.refused += refused.length
      faults.push(...refused.slice(0, faultsMax - faults.length))
    }

    const pieces = body === undefined ? [] : readLines(body, limits, ending)
    let counted = Promise.resolve()
    let isFailed = false
    try {
      for await (const part of readParts(pieces)) {
        // A token may expire or be revoked during the request.
        await authenticate(request, 'plants:write')
        factsOf(request).logFields = counts
        factsOf(request).failureSuffix = '; plants of earlier lines may have been created'
        if (isFailed) {
          break
        }
        await room.enter(place, part.size)
        counted = create(part, counted)
        counted.catch(() => {
          isFailed = true
        })
      }
    } finally {
      await counted.catch(() => {})
    }
    await counted
    return { ...counts, faults }
  }
}

interface Part {
  readonly plants: { readonly line: number; readonly plant: Plant }[]
  readonly faults: LineFault[]
  size: number
}

type LineFault = ReturnType<typeof faultOf>

/** Yields the plants and faults of the lines, each judged as the body of POST /plants. */
export async function* readParts(
  pieces: AsyncIterable<Iterable<Buffer>> | readonly Iterable<Buffer>[],
) {
  const begin = (): Part => ({ plants: [], faults: [], size: 0 })
  let part = begin()
  let line = 0
  for await (const piece of pieces) {
    for (const bytes of piece) {
      line++
      part.size += bytes.length + plantSize
      if (!isEmptyLine(bytes)) {
        addLine(bytes, line, part)
      }
      if (part.size >= partSizeMax) {
        yield part
        part = begin()
      }
    }
  }
  yield part
}

function addLine(bytes: Buffer, line: number, { plants, faults }: Part) {
  try {
    plants.push({ line, plant: parsePlant(readJson(bytes, 'line')) })
  } catch (error) {
    faults.push(faultOf(line, error))
  }
}

/** Returns the faults of a part in order of line, given the outcomes of its plants. */
function faultsOf(
  { plants, faults }: Part,
  outcomes: readonly CreateOutcome[],
): readonly LineFault[] {
  const taken = plants
    .filter((_, index) => outcomes[index] === 'id-taken')
    .map(({ line, plant }) => faultOf(line, idTaken(plant.id)))
  return [...faults, ...taken].sort((a, b) => a.line - b.line)
}

/** @param line its number, counted from 1 */
function faultOf(line: number, error: unknown) {
  const { body, isDefect } = toFailure(error)
  if (isDefect) {
    throw error
  }
  // Copy it, because a slice would keep the whole message in memory.
  return {
    line,
    error: body.error,
    message: Buffer.from(body.message.slice(0, messageLengthMax)).toString(),
  }
}

/** One of this many parts is the one that has waited longest. */
const partsPerTurn = 8

/** A part that waits for room. */
interface WaitingPart {
  /** The place of its batch in the order of arrival. */
  readonly place: number
  readonly size: number
  readonly admit: () => void
}

/**
 * The room for parts in progress. The part of the batch that came first is admitted
 * first, so batches of the same moment end one after another, not all at the end. But a
 * batch that never ends must not keep the others out.
 */
export class PartRoom {
  readonly #sizeMax: number
  /** The parts that wait, in order of arrival. */
  readonly #waiting: WaitingPart[] = []
  #admittedParts = 0
  #takenSize = 0
  #released = Promise.withResolvers<void>()

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax
  }

  /** Resolves once the part has room. A part that is too large is admitted alone. */
  enter(place: number, size: number): Promise<void> {
    const { promise, resolve: admit } = Promise.withResolvers<void>()
    const isFirst = this.#waiting.push({ place, size, admit }) === 1
    if (isFirst) {
      void this.#admitAll()
    }
    return promise
  }

  leave(size: number): void {
    this.#takenSize -= size
    this.#released.resolve()
    this.#released = Promise.withResolvers()
  }

  /**
   * Admits one part a turn of the event loop. Other requests of this thread run between,
   * and the batch of the part asks for its next one before others are admitted.
   */
  async #admitAll() {
    while (this.#waiting.length > 0) {
      await nextTurn()
      const isTurnOfOldest = this.#admittedParts % partsPerTurn === 0
      const [part] = isTurnOfOldest
        ? this.#waiting
        : this.#waiting.toSorted((a, b) => a.place - b.place)
      assert(part !== undefined, 'a part waits until it is admitted')
      while (this.#takenSize > 0 && this.#takenSize + part.size > this.#sizeMax) {
        await this.#released.promise
      }
      this.#waiting.splice(this.#waiting.indexOf(part), 1)
      this.#takenSize += part.size
      this.#admittedParts++
      part.admit()
    }
  }
}
