import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type Running, token } from './contestants.ts'
import { countPlants, run } from './plants.ts'

export interface Load {
  /** Creates plants, or gets this path with the id of a stored plant for `%s`. */
  readonly request: 'create' | `/${string}`
  readonly connections: number
}

/** What wrk measures, as `wrk.lua` writes it. */
interface WrkRun {
  readonly requests: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly refused: number
  readonly broken: number
}

export type Measured = Awaited<ReturnType<typeof measure>>

/**
 * Thread `index` of wrk creates plants from `next + index * 1,000,000`, so no plant is
 * created twice.
 */
const numbersPerLoad = 10_000_000
let next = numbersPerLoad

/**
 * Loads a server.
 *
 * @throws Error if an answer is missing or not 200, or if answered creates are not stored
 */
export async function measure(running: Running, load: Load, seconds = 1) {
  const { title, server, file } = running
  // Writes that an earlier contestant left to the system would slow this one down.
  execFileSync('sync', { timeout: 60_000 })
  const stored = countPlants(file)
  const spent = processorSeconds(server.pid)
  const measured = await runWrk(running, load, seconds)
  const { requests, refused, broken } = measured
  server.assertRunning()
  if (requests === 0 || refused > 0 || broken > 0) {
    throw new Error(
      `${title}: ${refused} of ${requests} answers were not 200, and ${broken} are missing`,
    )
  }
  const created = countPlants(file) - stored
  if (load.request === 'create' && created < requests) {
    throw new Error(
      `${title}: ${requests} creates were answered with 200, and ${created} plants stored`,
    )
  }
  /** The server's processor time for a request. */
  const processorMicros = ((processorSeconds(server.pid) - spent) / requests) * 1e6
  return { ...measured, processorMicros }
}

/** wrk needs less of the machine than a generator in JavaScript. */
async function runWrk(running: Running, load: Load, seconds: number): Promise<WrkRun> {
  const { url, plants } = running
  const { request, connections } = load
  const threads = Math.min(connections, Math.ceil(availableParallelism() / 2), 4)
  next += numbersPerLoad
  const options = ['-t', threads, '-c', connections, '-d', `${seconds}s`]
  const script = ['-s', join(import.meta.dirname, 'wrk.lua'), url, '--']
  const args = [...options, '--timeout', '10s', ...script, request, plants, next, token]
  const { stdout } = await run('wrk', args.map(String), {
    timeout: (seconds + 30) * 1_000,
    killSignal: 'SIGKILL',
  })
  return JSON.parse(stdout.slice(stdout.lastIndexOf('\n{')))
}

/** Returns the processor time of all threads of a process. */
function processorSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // Linux counts hundredths of a second, whatever its clock rate.
  return (Number(fields[11]) + Number(fields[12])) / 100
}
