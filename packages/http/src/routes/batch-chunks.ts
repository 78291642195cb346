import { type CreateOutcome, idTaken, type Plant, parsePlant } from '@plant-store/domain'
import { toFailure } from '../answer/failures.ts'
import { readJson } from '../request/body.ts'
import { isEmptyLine } from '../request/lines.ts'

/** The bytes of plants created together. Others wait a few milliseconds for them: in this thread, and at the store. */
const chunkSizeMax = 32 * 1024
/** The cost of a plant besides the bytes of its line. */
const plantSize = 192

/** For the message of a fault, which may quote the line. */
const messageLengthMax = 300

export interface Chunk {
  readonly plants: Plant[]
  /** The line of each plant. */
  readonly lines: number[]
  readonly faults: LineFault[]
  size: number
}

export interface LineFault {
  /** From 1. */
  readonly line: number
  readonly error: number
  readonly message: string
}

/** Yields the plants and faults of the lines, each judged as the body of POST /plants. */
export async function* readChunks(
  pieces: AsyncIterable<Iterable<Buffer>> | readonly Iterable<Buffer>[],
): AsyncGenerator<Chunk, void, void> {
  const begin = (): Chunk => ({ plants: [], lines: [], faults: [], size: 0 })
  let chunk = begin()
  let line = 0
  for await (const piece of pieces) {
    for (const bytes of piece) {
      line++
      chunk.size += bytes.length + plantSize
      if (!isEmptyLine(bytes)) readPlant(bytes, line, chunk)
      if (chunk.size < chunkSizeMax) continue
      yield chunk
      chunk = begin()
    }
  }
  yield chunk
}

function readPlant(bytes: Buffer, line: number, { plants, lines, faults }: Chunk): void {
  try {
    plants.push(parsePlant(readJson(bytes, 'line')))
    lines.push(line)
  } catch (error) {
    faults.push(faultOf(line, error))
  }
}

/** Returns the faults of a chunk in order of line, given the outcomes of its plants. */
export function faultsOf(
  { plants, lines, faults }: Chunk,
  outcomes: readonly CreateOutcome[],
): readonly LineFault[] {
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
