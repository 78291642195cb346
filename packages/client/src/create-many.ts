import { type AddOptions, isDomainError, parsePlant } from '@plant-store/domain'
import type { CallOptions, PlantInput } from './client.ts'
import { errorNumbers } from './error-numbers.ts'
import { RefusedError } from './errors.ts'
import { toNumber, writeExactJson } from './exact-json.ts'
import type { Send } from './send.ts'

export interface CreateManyOptions extends CallOptions, AddOptions {
  /** Called after each request with the counts so far. */
  readonly onProgress?: ((counts: CreatedCounts) => void) | undefined
  /** The faults to keep, by default 100. The others are only counted. */
  readonly faultsMax?: number | undefined
}

export interface CreatedCounts {
  readonly created: number
  /**
   * Plants that the store already had, exactly equal. Includes those created by an earlier attempt without an answer.
   */
  readonly existing: number
  readonly refused: number
}

export interface ManyCreated extends CreatedCounts {
  /** The first refused plants, in order. */
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

/** The most faults in one answer of the store. */
const answeredFaultsMax = 100

interface Line {
  readonly index: number
  readonly json: string
}

interface Part {
  readonly lines: Line[]
  /** Faults of plants that are not sent. */
  readonly faults: PlantFault[]
  length: number
}

type Ask = (lines: readonly Line[]) => Promise<ManyCreated>

export async function createMany(
  send: Send,
  batchUrl: URL,
  plants: AsyncIterable<PlantInput> | Iterable<PlantInput>,
  { onProgress, faultsMax = answeredFaultsMax, announce = true, ...options }: CreateManyOptions = {},
): Promise<ManyCreated> {
  const url = announce ? batchUrl : new URL('?announce=false', batchUrl)
  const counts = { created: 0, existing: 0, refused: 0 }
  const faults: PlantFault[] = []
  const ask: Ask = lines => {
    const body = lines.map(({ json }) => json).join('\n')
    const read = (answer: unknown) => readAnswer(answer, lines)
    return send({
      method: 'POST',
      url,
      body,
      mediaType: 'application/x-ndjson',
      mayRepeat: true,
      options,
      read,
    })
  }
  const sendPart = async ({ lines, faults: invalid }: Part) => {
    const answered = lines.length === 0 ? nothing : await askForAll(ask, lines, faultsMax - faults.length)
    counts.created += answered.created
    counts.existing += answered.existing
    counts.refused += answered.refused + invalid.length
    const refused = [...invalid, ...answered.faults].sort((a, b) => a.index - b.index)
    faults.push(...refused.slice(0, faultsMax - faults.length))
    onProgress?.({ ...counts })
  }

  let sending = Promise.resolve()
  for await (const part of partsOf(plants)) {
    // The next part is prepared while this one is sent.
    await sending
    sending = sendPart(part)
    // Handled where the promise is awaited.
    sending.catch(() => {})
  }
  await sending
  return { ...counts, faults }
}

async function* partsOf(
  plants: AsyncIterable<PlantInput> | Iterable<PlantInput>,
): AsyncGenerator<Part, void, void> {
  const begin = (): Part => ({ lines: [], faults: [], length: 0 })
  let part = begin()
  let index = 0
  for await (const plant of plants) {
    try {
      const json = writeExactJson(parsePlant(plant))
      part.lines.push({ index, json })
      part.length += json.length
    } catch (error) {
      if (!isDomainError(error)) throw error
      part.faults.push({ index, error: errorNumbers['invalid-plant'], message: error.message })
    }
    index++
    const { lines, faults, length } = part
    if (lines.length + faults.length < partPlantsMax && length < partLengthMax) continue
    yield part
    part = begin()
  }
  yield part
}

const nothing: ManyCreated = { created: 0, existing: 0, refused: 0, faults: [] }

/** Sends lines and resolves to their outcome, with the first `faultsMax` faults. */
async function askForAll(ask: Ask, lines: readonly Line[], faultsMax: number): Promise<ManyCreated> {
  let answered: ManyCreated
  try {
    answered = await ask(lines)
  } catch (error) {
    if (!(error instanceof RefusedError) || error.number !== errorNumbers['body-too-large']) throw error
    // One of the lines is longer than the store accepts.
    const [{ index }, ...others] = lines as [Line, ...Line[]]
    const fault = { index, error: error.number, message: error.message }
    if (others.length === 0) return { ...nothing, refused: 1, faults: [fault] }
    const middle = Math.ceil(lines.length / 2)
    const first = await askForAll(ask, lines.slice(0, middle), faultsMax)
    const second = await askForAll(ask, lines.slice(middle), faultsMax - first.faults.length)
    return {
      created: first.created + second.created,
      existing: first.existing + second.existing,
      refused: first.refused + second.refused,
      faults: [...first.faults, ...second.faults],
    }
  }

  // The answer holds only the first faults. Sending the remaining lines again changes nothing and returns
  // theirs.
  const faults = [...answered.faults]
  const lastIndex = faults.at(-1)?.index ?? Number.POSITIVE_INFINITY
  let rest = lines.filter(({ index }) => index > lastIndex)
  while (faults.length < Math.min(answered.refused, faultsMax) && rest.length > 0) {
    faults.push(...(await ask(rest.slice(0, answeredFaultsMax))).faults)
    rest = rest.slice(answeredFaultsMax)
  }
  return { ...answered, faults }
}

type Answer = Readonly<Record<'created' | 'existing' | 'refused', unknown>> & {
  readonly faults: readonly LineFault[]
}
type LineFault = Readonly<Record<'line' | 'error' | 'message', unknown>>

function readAnswer(answer: unknown, lines: readonly Line[]): ManyCreated {
  const { created, existing, refused, faults } = answer as Answer
  return {
    created: toNumber(created),
    existing: toNumber(existing),
    refused: toNumber(refused),
    faults: faults.map(({ line, error, message }) => {
      const { index } = lines[toNumber(line) - 1] as Line
      return { index, error: toNumber(error), message: `${message}` }
    }),
  }
}
