import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { processorSeconds } from './process-figures.ts'
import type { RunningTarget } from './targets.ts'

/** `lists` are pages of 100 from anywhere in the store; `mixed` is four reads and a create, over and over. */
export type Scenario = 'creates' | 'reads' | 'lists' | 'mixed'

export interface Load {
  /** Or a path to get, the same one each time. */
  readonly scenario: Scenario | `/${string}`
  readonly connections: number
  /** Whole seconds. */
  readonly seconds: number
}

export interface Measured {
  readonly requests: number
  /** Creates among them. */
  readonly created: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** What the server's processors spent on a request; 0 where the system does not say. */
  readonly processorMicros: number
}

/** What a generator saw. */
export interface Seen extends Omit<Measured, 'processorMicros'> {
  /** Numbers of plants that were used up. */
  readonly made: number
  readonly refused: number
  /** One of the answers that were not 200. */
  readonly refusal: string
  /** Requests without an answer, but for those still under way at the end. */
  readonly broken: number
}

export type Generator = (running: RunningTarget, load: Load) => Promise<Seen>

/** Whether wrk, which makes the load, is installed. It ends with 1 when it only tells its version. */
export const hasWrk = spawnSync('wrk', ['--version']).error === undefined

/** An answer may take this long. */
const answerTimeoutMs = 10_000

/**
 * Puts one load on one target.
 *
 * @throws Error when an answer is not 200 or is missing, or when the store holds another number of new plants than
 *   were answered with 200
 */
export async function measure(
  running: RunningTarget,
  load: Load,
  generate: Generator = runWrk,
): Promise<Measured> {
  const what = `${running.target.title}, ${load.scenario} over ${load.connections} connections`
  flushDisk()
  const before = running.stored() ?? 0
  const spentBefore = processorSeconds(running.process.pid)
  const { made, refused, refusal, broken, ...measured } = await generate(running, load)
  const spent = processorSeconds(running.process.pid) - spentBefore
  running.next += made
  running.process.assertRunning()
  if (refused > 0) throw new Error(`${what}: ${refused} answers were not 200, such as: ${refusal}`)
  if (broken > 0) throw new Error(`${what}: ${broken} requests got no answer`)
  if (measured.requests === 0) throw new Error(`${what}: no answer at all`)

  const after = await settled(running)
  if (after !== undefined) {
    const stored = after - before
    // Requests that were under way when the load stopped were perhaps stored, and their answers not seen.
    if (stored < measured.created || stored > measured.created + load.connections) {
      throw new Error(
        `${what}: ${measured.created} creates were answered with 200, and ${stored} plants stored`,
      )
    }
  }
  return { ...measured, processorMicros: (spent / measured.requests) * 1e6 }
}

/** How many plants there are once the requests that were under way have ended. */
async function settled(running: RunningTarget): Promise<number | undefined> {
  let stored = running.stored()
  for (let attempt = 0, unchanged = 0; attempt < 100 && unchanged < 3; attempt++) {
    await sleep(50)
    const now = running.stored()
    unchanged = now === stored ? unchanged + 1 : 0
    stored = now
  }
  return stored
}

/** What a target left in the page cache must not be written at the expense of the next. */
function flushDisk(): void {
  try {
    execFileSync('sync', { timeout: 60_000 })
  } catch {
    // A system without it.
  }
}

/** wrk takes less of the machine from the server than a generator in JavaScript. */
async function runWrk(
  { process, population, readable, next, token }: RunningTarget,
  { scenario, connections, seconds }: Load,
): Promise<Seen> {
  const threads = Math.min(connections, Math.max(1, Math.floor(availableParallelism() / 2)), 4)
  const kind = scenario.startsWith('/') ? 'path' : scenario
  const { stdout } = await promisify(execFile)(
    'wrk',
    [
      ...['-t', threads, '-c', connections, '-d', `${seconds}s`, '--timeout', `${answerTimeoutMs / 1_000}s`],
      ...['-s', fileURLToPath(new URL('./wrk.lua', import.meta.url)), process.url, '--'],
      ...[kind, population.seed, population.idBits, readable, next, threads, token, scenario],
    ].map(String),
    { timeout: (seconds + 30) * 1_000, killSignal: 'SIGKILL' },
  )
  const seen = JSON.parse(stdout.slice(stdout.lastIndexOf('\n{')))
  return {
    requests: seen.requests,
    created: seen.created,
    perSecond: seen.requests / (seen.microseconds / 1e6),
    p50Ms: seen.p50 / 1_000,
    p99Ms: seen.p99 / 1_000,
    made: seen.made * threads,
    refused: seen.refused,
    refusal: seen.refusal,
    broken: seen.broken,
  }
}
