import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type Running, token } from './contestants.ts'
import { countPlants, run } from './plants.ts'

/** The figures of wrk, as `wrk.lua` writes them. */
interface WrkRun {
  readonly requests: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The number of answers that were not 200 or are missing. */
  readonly failed: number
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
 * @param request `create`, or the path to get, with `%s` for the id of a stored plant
 * @throws Error if an answer is missing or not 200, or if answered creates are not stored
 */
export async function measure(
  running: Running,
  request: string,
  connections: number,
  seconds = 1,
) {
  const { title, server, url, file, plants } = running
  const threads = Math.min(connections, Math.ceil(availableParallelism() / 2), 4)
  next += numbersPerLoad
  const options = ['-t', threads, '-c', connections, '-d', seconds, '--timeout', 10]
  const script = ['-s', join(import.meta.dirname, 'wrk.lua')]
  const args = [...options, ...script, url, '--', request, plants, next, token]
  // Writes that an earlier contestant left to the system would slow this one down.
  await run('sync')
  const stored = countPlants(file)
  const spent = processorSeconds(server.pid)

  // wrk needs less of the machine than a generator in JavaScript.
  const { stdout } = await run('wrk', args.map(String), {
    timeout: (seconds + 30) * 1_000,
  })

  server.assertRunning()
  const measured: WrkRun = JSON.parse(stdout.slice(stdout.lastIndexOf('\n{')))
  const { requests, failed } = measured
  assert(
    requests > 0 && failed === 0,
    `${title}: ${failed} of ${requests} answers were not 200 or are missing`,
  )
  const created = countPlants(file) - stored
  assert(
    request !== 'create' || created >= requests,
    `${title}: ${requests} creates were answered with 200, and ${created} plants stored`,
  )
  /** The server's processor time for a request. */
  const processorMicros = ((processorSeconds(server.pid) - spent) / requests) * 1e6
  return { ...measured, processorMicros }
}

/** Returns the processor time of all threads of a process. */
function processorSeconds(pid: number) {
  // The second field is the name of the program, and no server has one with a space.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')
  // Linux counts hundredths of a second, whatever its clock rate.
  return (Number(fields[13]) + Number(fields[14])) / 100
}
