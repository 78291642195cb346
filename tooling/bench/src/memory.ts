import { existsSync } from 'node:fs'
import { temporaryFolder } from '@plant-store/harness'
import { measure } from './load.ts'
import { residentMebibytes } from './process-figures.ts'
import { formatInteger } from './report.ts'
import { startTarget, type Target, tryOut } from './targets.ts'

const mebibytesMax = 200
const sampleEveryMs = 100

export interface MemoryOptions {
  readonly creates: number
  readonly connections: number
  readonly seed: number
}

/**
 * Watches a server's whole process while it creates plants, and prints its resident memory.
 *
 * @returns whether it stayed under the bound
 */
export async function memory(
  target: Target,
  { creates, connections, seed }: MemoryOptions,
  signal: AbortSignal,
): Promise<boolean> {
  if (!existsSync('/proc/self/status'))
    throw new Error('memory is read from /proc, which this system does not have')
  using temporary = temporaryFolder()
  const folder = temporary.path
  let timer: NodeJS.Timeout | undefined
  try {
    // A store that was there at the start, as it mostly is; who makes it keeps Kysely in memory, some 20 MiB.
    await using running = await startTarget(target, { folder, population: { seed, idBits: 52 }, plants: 1 })
    await tryOut(running)
    let most = 0
    const sample = () => {
      const mebibytes = residentMebibytes(running.process.pid)
      most = Math.max(most, mebibytes)
      return mebibytes
    }
    console.log(`at the start: ${sample().toFixed(1)} MiB`)
    timer = setInterval(sample, sampleEveryMs)

    const step = Math.max(1, Math.floor(creates / 10))
    const seen: number[] = []
    for (let created = 0, next = step; created < creates; ) {
      signal.throwIfAborted()
      running.process.assertRunning()
      created += (await measure(running, { scenario: 'creates', connections, seconds: 1 })).created
      if (created < next) continue
      seen.push(sample())
      console.log(
        `after ${formatInteger(created)} creates: ${seen.at(-1)?.toFixed(1)} MiB, the most so far ${most.toFixed(1)} MiB`,
      )
      next = created - (created % step) + step
    }
    const holds = most < mebibytesMax
    const grown = (seen.at(-1) ?? 0) - (seen[Math.floor(seen.length / 2)] ?? 0)
    console.log(
      `the most: ${most.toFixed(1)} MiB, under ${mebibytesMax} MiB wanted: ${holds ? 'yes' : 'NO'}; ` +
        `over the second half it changed by ${grown.toFixed(1)} MiB`,
    )
    return holds
  } finally {
    clearInterval(timer)
  }
}
