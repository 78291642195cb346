import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
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
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore', timeout: 10_000 })
  } catch {
    throw new NoStraceError(
      'strace is needed to count fsyncs, and it is not installed (Debian: apt install strace)',
    )
  }
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-fsyncs-'))
  try {
    await using running = await startTarget(target, { folder, population: { seed, idBits: 52 }, plants: 0 })
    await tryOut(running)

    const alone = await countFsyncs(running, join(folder, 'alone.strace'), () =>
      createMany(running, oneByOne, 1),
    )
    const aloneHolds = alone >= oneByOne
    console.log(
      `${formatInteger(oneByOne)} creates one after another: ${formatInteger(alone)} fsyncs, ` +
        `at least ${formatInteger(oneByOne)} wanted: ${aloneHolds ? 'yes' : 'NO'}`,
    )
    const shared = await countFsyncs(running, join(folder, 'together.strace'), () =>
      createMany(running, together, clients),
    )
    const sharedHolds = shared <= together / 2
    console.log(
      `${formatInteger(together)} creates from ${clients} clients: ${formatInteger(shared)} fsyncs, ` +
        `at most ${formatInteger(together / 2)} wanted: ${sharedHolds ? 'yes' : 'NO'}`,
    )
    const stored = running.stored()
    if (stored !== running.next) throw new Error(`${running.next} plants were created, and ${stored} stored`)
    return aloneHolds && sharedHolds
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function countFsyncs(running: RunningTarget, file: string, work: () => Promise<void>): Promise<number> {
  const strace = spawn(
    'strace',
    ['-f', '-y', '-e', 'trace=fsync,fdatasync', '-o', file, '-p', String(running.process.pid)],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  try {
    await attached(strace)
    await work()
  } finally {
    if (strace.exitCode === null && strace.signalCode === null) {
      const ended = once(strace, 'exit')
      strace.kill('SIGINT')
      const timer = setTimeout(() => strace.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(timer)
    }
  }
  // A call that another thread interrupted has a second line, which says "resumed" and names no file.
  return readFileSync(file, 'utf8').match(/ (fsync|fdatasync)\(\d+<[^>]*\.db/g)?.length ?? 0
}

/** A process has many threads, and the one that syncs must be watched too. */
async function attached(strace: ChildProcess): Promise<void> {
  let said = ''
  strace.stderr?.setEncoding('utf8').on('data', text => {
    said += text
  })
  for (let waited = 0; !said.includes(' attached'); waited += 50) {
    if (strace.exitCode !== null || waited > 10_000) throw new Error(`strace could not attach: ${said}`)
    await sleep(50)
  }
  await sleep(200)
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
