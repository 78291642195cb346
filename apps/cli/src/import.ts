import { createReadStream, statSync } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import type { Plant } from '@plant-store/domain'
import type { LoadOutcome, OnTaken } from '@plant-store/persistence'
import { OutcomeUnknownError, openArchive } from '@plant-store/persistence'
import { readCsv } from './csv.ts'
import { exitCodes, Failure, fileFailure } from './failure.ts'
import { type Entry, wholeLines } from './lines.ts'
import { readNdjson } from './ndjson.ts'
import { counted, grouped, type Output, print } from './output.ts'
import { isSameFile, refuseStore } from './output-file.ts'
import { duration, showProgress } from './progress.ts'
import { createRejects } from './rejects.ts'

export const formats = ['ndjson', 'csv'] as const
export type FormatName = (typeof formats)[number]

export interface ImportRequest {
  /** A file, or `-` for the standard input. */
  readonly from: string
  /** Told by the content when missing. */
  readonly format?: FormatName
  readonly onTaken: OnTaken
  /** Keeps nothing unless every line is kept. */
  readonly strict: boolean
  readonly rejects: string
  readonly lineBytesMax: number
}

/** Plants that share a transaction: it takes a few tenths of a second, in which nobody else can write a store in a file. */
const batchPlants = 20_000
const batchTextMax = 16 * 1024 * 1024

const chunkBytes = 256 * 1024

/** @returns the exit code */
export async function importPlants(
  url: string,
  request: ImportRequest,
  output: Output,
  signal: AbortSignal,
): Promise<number> {
  const { from, onTaken, strict, lineBytesMax } = request
  const source = openSource(from, signal)
  const { chunks, format } = await detectFormat(source.chunks, request.format, from)
  if (from !== '-' && isSameFile(from, request.rejects)) {
    throw new Failure(
      `${request.rejects} is what is imported: name another file for the rejects`,
      exitCodes.usage,
    )
  }
  refuseStore(request.rejects, url)
  await using archive = await openArchive(url)
  await using staged = strict ? await archive.stage(onTaken) : undefined
  using progress = await showProgress({ isShown: !output.json, unit: 'plants', ...source.size })
  const rejects = createRejects(request.rejects)

  const startedMs = performance.now()
  const counts = { read: 0, inserted: 0, replaced: 0, alreadyThere: 0, rejected: 0 }
  let waiting: Entry[] = []
  let waitingText = 0
  let keptBefore = 1
  const load = async () => {
    const plants: Plant[] = []
    for (const entry of waiting) if ('plant' in entry) plants.push(entry.plant)
    try {
      const outcomes = await (staged ? staged.add(plants) : archive.load(plants, onTaken))
      keptBefore = (waiting.at(-1)?.line ?? 0) + 1
      count(waiting, outcomes)
      rejects.flush()
    } catch (cause) {
      throw withRest(
        cause as Error,
        strict || keptBefore === 1 ? nothing : `what came before line ${keptBefore} is kept`,
      )
    }
    waiting = []
    waitingText = 0
    progress.update(source.bytesRead(), counts.read)
  }
  const count = (entries: readonly Entry[], outcomes: readonly LoadOutcome[]) => {
    let loaded = 0
    for (const entry of entries) {
      const outcome = 'plant' in entry ? outcomes[loaded++] : 'refused'
      counts.read++
      if (outcome === 'inserted') counts.inserted++
      else if (outcome === 'replaced') counts.replaced++
      else if (outcome === 'already-there') counts.alreadyThere++
      else {
        const reason = 'reason' in entry ? entry.reason : `id ${entry.plant.id} is taken by another plant`
        if (strict) throw new Failure(`line ${entry.line}: ${reason}`)
        counts.rejected++
        rejects.add(entry, reason)
      }
    }
  }

  try {
    const read = format === 'csv' ? readCsv : readNdjson
    for await (const entries of read(wholeLines(chunks, lineBytesMax), lineBytesMax)) {
      for (const entry of entries) {
        waiting.push(entry)
        waitingText += entry.raw.length
        if (waiting.length >= batchPlants || waitingText >= batchTextMax) await load()
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  if (!signal.aborted || !strict) await load()
  if (staged && !signal.aborted) {
    progress.note('storing')
    const outcome = await staged.keep().catch(cause => {
      throw withRest(cause, nothing)
    })
    if (outcome !== 'kept') {
      throw new Failure(`id ${outcome.takenMeanwhile} was taken by another plant meanwhile (${nothing})`)
    }
  }
  rejects.close()
  progress[Symbol.dispose]()

  if (signal.aborted && strict) throw new Failure('interrupted: nothing was imported', exitCodes.interrupted)
  const seconds = (performance.now() - startedMs) / 1000
  const result = {
    ...counts,
    rejects: counts.rejected > 0 ? request.rejects : null,
    seconds,
    interrupted: signal.aborted,
  }
  print(output, result, summary(result))
  if (signal.aborted) throw new Failure('interrupted: what is counted above is kept', exitCodes.interrupted)
  return counts.rejected > 0 ? exitCodes.rejects : exitCodes.done
}

const nothing = 'nothing was imported'

/** A failure that also tells what was kept before it. */
function withRest(cause: Error, rest: string): Failure {
  if (cause instanceof OutcomeUnknownError)
    return new Failure(`${cause.message} (import it again)`, exitCodes.failed, { cause })
  return new Failure(`${cause.message} (${rest})`, exitCodes.failed, { cause })
}

interface Counts {
  readonly inserted: number
  readonly replaced: number
  readonly alreadyThere: number
  readonly rejected: number
  readonly rejects: string | null
  readonly seconds: number
}

function summary({ inserted, replaced, alreadyThere, rejected, rejects, seconds }: Counts): string {
  const rate = grouped(Math.round((inserted + replaced) / Math.max(seconds, 0.001)))
  return [
    `${counted(inserted + replaced, 'plant')} imported in ${duration(seconds)} (${rate}/s)`,
    replaced > 0 ? `, ${grouped(replaced)} of them in the place of others` : '',
    alreadyThere > 0 ? `, ${grouped(alreadyThere)} already there` : '',
    rejects === null ? '' : `; ${counted(rejected, 'line')} rejected, see ${rejects}`,
  ].join('')
}

interface Source {
  readonly chunks: AsyncIterable<Buffer>
  readonly size: { readonly total?: number }
  bytesRead(): number
}

function openSource(from: string, signal: AbortSignal): Source {
  let bytes = 0
  const stat = from === '-' ? undefined : statSync(from, { throwIfNoEntry: false })
  const stream: Readable =
    from === '-' ? process.stdin : createReadStream(from, { highWaterMark: chunkBytes })
  addAbortSignal(signal, stream)
  async function* chunks() {
    try {
      for await (const chunk of stream) {
        bytes += (chunk as Buffer).length
        yield chunk as Buffer
      }
    } catch (error) {
      throw signal.aborted ? error : fileFailure(from, error)
    }
  }
  return { chunks: chunks(), size: stat?.isFile() ? { total: stat.size } : {}, bytesRead: () => bytes }
}

/** Enough to see what a file is; a shorter one is seen whole. */
const beginningBytes = 4096

/** By the first character that is not a blank; the byte order mark before it, which some editors write, is taken off. */
async function detectFormat(
  source: AsyncIterable<Buffer>,
  given: FormatName | undefined,
  from: string,
): Promise<{ chunks: AsyncIterable<Buffer>; format: FormatName }> {
  const iterator = source[Symbol.asyncIterator]()
  let beginning: Buffer = Buffer.alloc(0)
  while (beginning.length < beginningBytes) {
    const { done, value } = await iterator.next()
    if (done) break
    beginning = Buffer.concat([beginning, value])
  }
  const mark = beginning.subarray(0, 2).toString('hex')
  if (mark === 'fffe' || mark === 'feff') throw new Failure(`${from}: it is UTF-16, and must be UTF-8`)
  if (beginning.subarray(0, 3).toString('hex') === 'efbbbf') beginning = beginning.subarray(3)

  const first = beginning.toString('latin1').trimStart()[0]
  if (given !== 'csv' && first === '[') {
    throw new Failure(`${from}: it is a JSON array, and must be one object a line (jq -c '.[]' makes it so)`)
  }
  async function* chunks() {
    if (beginning.length > 0) yield beginning
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  return { chunks: chunks(), format: given ?? (first === undefined || first === '{' ? 'ndjson' : 'csv') }
}
