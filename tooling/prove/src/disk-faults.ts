import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasStrace, type Server, temporaryFolder, trace, until } from '@plant-store/harness'
import { createRandom, type Random } from '@plant-store/harness/random'
import { createHistory, toValue } from './history.ts'
import { mount } from './mount.ts'
import { type Operations, operationsOver, recorded } from './operations.ts'
import { type Circumstances, type Finding, figure, type Part, timeIsUp } from './part.ts'
import { connectClient, startProgram } from './program.ts'

export const diskFaultsPart: Part = { name: 'disk-faults', share: 0.08, run: runDiskFaults }

/** What the disk answers instead of doing what it is asked; the calls are those that only the store makes. */
const faults = [
  ['an fsync that fails', 'fsync,fdatasync:error=EIO'],
  ['a disk that is full', 'pwrite64:error=ENOSPC'],
  ['a write that fails', 'pwrite64:error=EIO'],
] as const

const clients = 8
const ids = Array.from({ length: 40 }, (_, n) => BigInt(n))
/** Connections that are asked whether it is ready: enough to come to every thread that answers. */
const probes = 12
const settleTimeoutMs = 20_000

/**
 * Lets the disk fail under a load: clients are told (503), nothing counts as done that isn't, `/readyz` says so as long
 * as it lasts, and afterwards it works again by itself; or is killed right then, and opens with what was answered.
 */
export async function runDiskFaults(circumstances: Circumstances): Promise<Finding> {
  const random = createRandom(circumstances.seed)
  const failures: string[] = []
  const skipped: string[] = []
  let injected = 0
  let lost = 0
  let told = 0
  if (!hasStrace) skipped.push('faults of calls: strace is not installed')
  else {
    const rounds = Math.ceil(3 * circumstances.scale)
    for (const [what, injection] of faults) {
      for (let round = 0; round < rounds && !timeIsUp(circumstances); round++) {
        injected++
        // Every third is killed while the disk fails.
        const seen = await failOnce(what, injection, random, injected % 3 === 0, circumstances.preload)
        failures.push(...seen.failures)
        lost += seen.lost
        told += seen.told
      }
    }
  }
  using folder = temporaryFolder()
  const mounted = mount(folder.path, '4m')
  if (typeof mounted === 'string') skipped.push(`a small disk that fills: ${mounted}`)
  else {
    using _disk = mounted
    injected++
    failures.push(...(await fillDisk(folder.path)))
  }
  return {
    tried: `${injected} faults of the disk; ${figure(told)} changes were told that it failed`,
    times: injected,
    failures,
    lost,
    skipped,
  }
}

async function failOnce(
  what: string,
  injection: string,
  random: Random,
  killed: boolean,
  preload: string | undefined,
): Promise<{ failures: string[]; lost: number; told: number }> {
  using folder = temporaryFolder()
  const options = { databaseUrl: `file:${join(folder.path, 'plants.db')}`, preload }
  const failures: string[] = []
  const fail = (text: string) => failures.push(`${what}${killed ? ', then killed' : ''}: ${text}`)
  const note = (error: Error) => fail(error.message)
  const history = createHistory()
  let isOver = false
  {
    await using program = await startProgram(options)
    const client = await connectClient(program)
    const plain = operationsOver(client)
    const operations = recorded(plain, history)
    let isCut = false
    const work = async () => {
      while (!isOver) {
        const outcome = await actOnce(operations, random)
        // While it lasts an operation tells at once, and a client that asks at once again is no good neighbour.
        if (outcome.is === 'unknown') await sleep(20)
        if (isCut && outcome.is === 'unknown') return
      }
    }
    const working = Array.from({ length: clients }, () => work().catch(note))
    const before = history.counts.unknown
    const strace = await trace(program.pid, injection)
    if (strace === undefined) throw new Error('strace may not attach')
    await until(
      'a change that is told of the fault',
      () => history.counts.unknown > before,
      settleTimeoutMs,
    ).catch(note)
    await until(
      'to be not ready',
      async () => (await readiness(program)).every(status => status === 503),
      settleTimeoutMs,
    ).catch(note)
    const read = await plain.read(-1n)
    if (read.is !== 'absent') fail(`a read is told ${read.is}`)
    if (killed) {
      isCut = true
      await program.end('SIGKILL')
      isOver = true
      await strace.detach()
      await Promise.all(working)
    } else {
      await strace.detach()
      await until(
        'to be ready',
        async () => (await readiness(program)).every(status => status === 200),
        settleTimeoutMs,
      ).catch(note)
      const { done } = history.counts
      await until('changes that succeed again', () => history.counts.done > done + 50, settleTimeoutMs).catch(
        note,
      )
      isOver = true
      await Promise.all(working)
      if (!program.isRunning()) fail('it ended')
    }
    client.close()
  }
  const told = history.counts.unknown
  // What is there must be what was answered, to a process that knows nothing of the last one.
  await using program = await startProgram(options)
  const client = await connectClient(program)
  const found = await operationsOver(client).list({ after: -1n, limit: 1_000 })
  client.close()
  history.settle(new Map(found))
  const unexplained = history.unexplained(new Map())
  for (const id of unexplained) fail(`no order of events explains plant ${id}`)
  return { failures, lost: unexplained.length, told }
}

async function actOnce(operations: Operations, random: Random) {
  const id = random.pick(ids)
  const text = { name: `n${random.below(2 ** 30)}-${random.below(2 ** 30)}` }
  const turn = random.below(4)
  if (turn === 0) return await operations.create(id, text)
  if (turn === 1) return await operations.replace(id, text)
  return turn === 2 ? await operations.remove(id) : await operations.read(id)
}

/** What each of several new connections is told. */
async function readiness({ url }: Server): Promise<number[]> {
  return await Promise.all(
    Array.from({ length: probes }, async () => {
      const answer = await fetch(`${url}/readyz`, { headers: { connection: 'close' } })
      await answer.arrayBuffer()
      return answer.status
    }),
  )
}

/** Fills a disk to the last byte, gives a little of it back, and looks whether everything that was answered is there. */
async function fillDisk(folder: string): Promise<string[]> {
  const failures: string[] = []
  const fail = (text: string) => failures.push(`a small disk that fills: ${text}`)
  const note = (error: Error) => fail(error.message)
  const place = join(folder, 'store')
  mkdirSync(place)
  const ballast = join(folder, 'ballast')
  writeFileSync(ballast, Buffer.alloc(1024 * 1024, 1))
  const databaseUrl = `file:${join(place, 'plants.db')}`
  const kept = new Map<bigint, string>()
  let id = 0n
  {
    await using program = await startProgram({ databaseUrl })
    const client = await connectClient(program)
    const operations = operationsOver(client)
    const create = async (repeated: number) => {
      id += 1n
      const text = { name: `${id} `.repeat(repeated) }
      const outcome = await operations.create(id, text)
      if (outcome.is === 'done') kept.set(id, toValue(text))
      return outcome.is
    }
    while ((await create(8_000)) === 'done' && id < 1_000n) {}
    if (id >= 1_000n) fail('it never filled')
    // There may be room for less, and as long as there is, it is ready.
    const isFull = async () => {
      await create(1)
      return (await readiness(program)).every(status => status === 503)
    }
    await until('to be not ready', isFull, settleTimeoutMs).catch(note)
    if ((await operations.read(1n)).is !== 'done') fail('a read does not work')
    rmSync(ballast)
    await until(
      'to be ready',
      async () => (await readiness(program)).every(status => status === 200),
      settleTimeoutMs,
    ).catch(note)
    if ((await create(1)) !== 'done') fail('a change does not work once there is room again')
    client.close()
    const ended = await program.end('SIGTERM')
    if (ended !== 0) fail(`it ended with ${ended}`)
  }
  await using program = await startProgram({ databaseUrl })
  const client = await connectClient(program)
  const operations = operationsOver(client)
  for (const [each, value] of kept) {
    const outcome = await operations.read(each)
    if (outcome.is !== 'done' || outcome.seen !== value) fail(`plant ${each} is ${outcome.is}`)
  }
  client.close()
  return failures
}
