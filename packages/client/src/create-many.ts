import { isDomainError, parsePlant } from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import { errorNumbers, RefusedError } from './errors.ts'
import { toNumber } from './send.ts'

export interface ManyCreated {
  readonly created: number
  /**
   * The store already had them, exactly equal. An earlier attempt without an answer may
   * have created them.
   */
  readonly existing: number
  readonly refused: number
  /** The first 100 refused plants, in order. */
  readonly faults: readonly PlantFault[]
}

export interface PlantFault {
  /** The plant's position, from 0. */
  readonly index: number
  /** One of `errorNumbers`, or of a newer store. */
  readonly error: number
  readonly message: string
}

/** Browsers cannot stream a request over HTTP/1.1, so the plants are sent in parts. */
const partPlantsMax = 5_000
const partLengthMax = 1024 * 1024
const faultsMax = 100

/** Sends the lines of a batch in one request. */
type SendBatch = (
  body: string,
  read: (answer: unknown) => ManyCreated,
) => Promise<ManyCreated>

const none: ManyCreated = { created: 0, existing: 0, refused: 0, faults: [] }

export async function createMany(
  plants: AsyncIterable<unknown> | Iterable<unknown>,
  sendBatch: SendBatch,
): Promise<ManyCreated> {
  let total = none
  let lines: string[] = []
  let firstIndex = 0
  let length = 0
  for await (const plant of plants) {
    const { line, fault } = toLine(plant)
    if (fault !== undefined) {
      total = sum(total, refusedAt(firstIndex + lines.length, fault))
    }
    lines.push(line)
    length += line.length

    const isFull = lines.length >= partPlantsMax || length >= partLengthMax
    if (isFull) {
      total = sum(total, await sendLines(lines, firstIndex, sendBatch))
      firstIndex += lines.length
      lines = []
      length = 0
    }
  }
  if (lines.length === 0) {
    return total
  }
  return sum(total, await sendLines(lines, firstIndex, sendBatch))
}

/**
 * Returns the line of a plant. That of a plant that the domain refuses is empty: the
 * store ignores it, and counts it.
 */
function toLine(plant: unknown) {
  try {
    return { line: writeJsonRecord(parsePlant(plant)) }
  } catch (error) {
    if (!isDomainError(error)) {
      throw error
    }
    const fault = { error: errorNumbers['invalid-plant'], message: error.message }
    return { line: '', fault }
  }
}

/**
 * Sends the lines in one request, or in two halves if one of them is longer than the
 * store accepts.
 */
async function sendLines(
  lines: readonly string[],
  firstIndex: number,
  sendBatch: SendBatch,
): Promise<ManyCreated> {
  try {
    return await sendBatch(lines.join('\n'), answer => readAnswer(answer, firstIndex))
  } catch (error) {
    const isTooLarge =
      error instanceof RefusedError && error.number === errorNumbers['body-too-large']
    if (!isTooLarge) {
      throw error
    }
    if (lines.length === 1) {
      return refusedAt(firstIndex, { error: error.number, message: error.message })
    }
    const middle = Math.ceil(lines.length / 2)
    const before = await sendLines(lines.slice(0, middle), firstIndex, sendBatch)
    const behind = await sendLines(lines.slice(middle), firstIndex + middle, sendBatch)
    return sum(before, behind)
  }
}

function refusedAt(index: number, fault: Omit<PlantFault, 'index'>): ManyCreated {
  return { ...none, refused: 1, faults: [{ index, ...fault }] }
}

function sum(one: ManyCreated, other: ManyCreated): ManyCreated {
  const faults = [...one.faults, ...other.faults]
  faults.sort((a, b) => a.index - b.index)
  return {
    created: one.created + other.created,
    existing: one.existing + other.existing,
    refused: one.refused + other.refused,
    faults: faults.slice(0, faultsMax),
  }
}

/** The answer to a batch, before its members are judged. */
interface BatchAnswer {
  readonly created: unknown
  readonly existing: unknown
  readonly refused: unknown
  readonly faults: readonly Readonly<Record<'line' | 'error' | 'message', unknown>>[]
}

/** @throws TypeError if it is no answer to a batch */
function readAnswer(answer: unknown, firstIndex: number): ManyCreated {
  const { created, existing, refused, faults } = answer as BatchAnswer
  return {
    created: toNumber(created),
    existing: toNumber(existing),
    refused: toNumber(refused),
    faults: faults.map(({ line, error, message }) => ({
      index: firstIndex + toNumber(line) - 1,
      error: toNumber(error),
      message: `${message}`,
    })),
  }
}
