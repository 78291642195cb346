import { hasStrace, temporaryFolder, trace } from '@plant-store/harness'
import { bodyOf } from './population.ts'
import { formatInteger } from './report.ts'
import { type RunningTarget, startTarget, type Target, tryOut } from './targets.ts'

const oneByOne = 256
const clients = 64
const together = 2_560

/** There is nothing to count fsyncs with. */
export class NoStraceError extends Error {}

/**
 * Counts the fsyncs of a server's store while it creates plants, and prints the counts.
 *
 * @returns whether each create had an fsync to wait for, and concurrent ones shared theirs
 * @throws NoStraceError
 */
export async function fsyncs(target: Target, seed: number): Promise<boolean> {
  if (!hasStrace)
    throw new NoStraceError(
      'strace is needed to count fsyncs, and it is not installed (apt-get install strace)',
    )
  using temporary = temporaryFolder()
  await using running = await startTarget(target, {
    folder: temporary.path,
    population: { seed, idBits: 52 },
    plants: 0,
  })
  await tryOut(running)

  const alone = await countFsyncs(running, () => createMany(running, oneByOne, 1))
  const aloneHolds = alone >= oneByOne
  console.log(
    `${formatInteger(oneByOne)} creates one after another: ${formatInteger(alone)} fsyncs, ` +
      `at least ${formatInteger(oneByOne)} wanted: ${aloneHolds ? 'yes' : 'NO'}`,
  )
  const shared = await countFsyncs(running, () => createMany(running, together, clients))
  const sharedHolds = shared <= together / 2
  console.log(
    `${formatInteger(together)} creates from ${clients} clients: ${formatInteger(shared)} fsyncs, ` +
      `at most ${formatInteger(together / 2)} wanted: ${sharedHolds ? 'yes' : 'NO'}`,
  )
  const stored = running.stored()
  if (stored !== running.next) throw new Error(`${running.next} plants were created, and ${stored} stored`)
  return aloneHolds && sharedHolds
}

/** Returns how many creates of concurrent clients share an fsync. */
export async function createsPerFsync(target: Target, seed: number): Promise<number> {
  using folder = temporaryFolder()
  const population = { seed, idBits: 52 } as const
  await using running = await startTarget(target, { folder: folder.path, population, plants: 0 })
  return together / (await countFsyncs(running, () => createMany(running, together, clients)))
}

async function countFsyncs(running: RunningTarget, work: () => Promise<void>): Promise<number> {
  const tracer = await trace(running.process.pid)
  if (tracer === undefined) throw new NoStraceError('strace may not attach to the server')
  await work()
  const calls = await tracer.detach()
  // A call that another thread interrupted has a second line, which says "resumed" and names no file.
  return calls.filter(call => / (fsync|fdatasync)\(\d+<[^>]*\.db/.test(call)).length
}

async function createMany(running: RunningTarget, count: number, connections: number): Promise<void> {
  const { process, token, population } = running
  const end = running.next + count
  const client = async () => {
    while (running.next < end) {
      const answer = await fetch(`${process.url}/plants`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: bodyOf(running.next++, population),
        signal: AbortSignal.timeout(30_000),
      })
      const body = await answer.text()
      if (answer.status !== 200) throw new Error(`a create was answered with ${answer.status} ${body}`)
    }
  }
  await Promise.all(Array.from({ length: connections }, client))
}
