import { isDomainError, parsePlant } from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import { errorNumbers, RefusedError } from './errors.ts'
import { toNumber } from './send.ts'

export interface ManyCreated {
  readonly created: number
  /** The store already had them, exactly equal. An earlier attempt without an answer may have created them. */
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

export async function createMany(
  plants: AsyncIterable<unknown> | Iterable<unknown>,
  sendBatch: (
    body: string,
    read: (answer: unknown) => ManyCreated,
  ) => Promise<ManyCreated>,
): Promise<ManyCreated> {
  const sendLines = async (
    lines: readonly string[],
    firstIndex: number,
  ): Promise<ManyCreated> => {
    try {
      return await sendBatch(lines.join('\n'), answer => readAnswer(answer, firstIndex))
    } catch (error) {
      if (
        !(error instanceof RefusedError) ||
        error.number !== errorNumbers['body-too-large']
      ) {
        throw error
      }
      // One of the lines is longer than the store accepts.
      if (lines.length === 1) {
        return refusing(firstIndex, error.number, error.message)
      }
      const middle = Math.ceil(lines.length / 2)
      const before = await sendLines(lines.slice(0, middle), firstIndex)
      return sum(before, await sendLines(lines.slice(middle), firstIndex + middle))
    }
  }

  let total: ManyCreated = { created: 0, existing: 0, refused: 0, faults: [] }
  let lines: string[] = []
  let [firstIndex, length] = [0, 0]
  for await (const plant of plants) {
    let line = ''
    try {
      line = writeJsonRecord(parsePlant(plant))
    } catch (error) {
      if (!isDomainError(error)) {
        throw error
      }
      // The store ignores the empty line, and counts it.
      const index = firstIndex + lines.length
      total = sum(total, refusing(index, errorNumbers['invalid-plant'], error.message))
    }
    lines.push(line)
    length += line.length
    if (lines.length < partPlantsMax && length < partLengthMax) {
      continue
    }
    total = sum(total, await sendLines(lines, firstIndex))
    firstIndex += lines.length
    lines = []
    length = 0
  }
  return lines.length === 0 ? total : sum(total, await sendLines(lines, firstIndex))
}

function refusing(index: number, error: number, message: string): ManyCreated {
  return { created: 0, existing: 0, refused: 1, faults: [{ index, error, message }] }
}

function sum(one: ManyCreated, other: ManyCreated): ManyCreated {
  return {
    created: one.created + other.created,
    existing: one.existing + other.existing,
    refused: one.refused + other.refused,
    faults: [...one.faults, ...other.faults]
      .sort((a, b) => a.index - b.index)
      .slice(0, faultsMax),
  }
}

function readAnswer(answer: unknown, firstIndex: number): ManyCreated {
  const { created, existing, refused, faults } = answer as Record<
    keyof ManyCreated,
    unknown
  >
  return {
    created: toNumber(created),
    existing: toNumber(existing),
    refused: toNumber(refused),
    faults: (faults as Record<'line' | 'error' | 'message', unknown>[]).map(
      ({ line, error, message }) => {
        return {
          index: firstIndex + toNumber(line) - 1,
          error: toNumber(error),
          message: `${message}`,
        }
      },
    ),
  }
}
