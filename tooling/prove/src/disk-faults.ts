import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  hasStrace,
  type Server,
  temporaryFolder,
  trace,
  until,
} from '@plant-store/harness'
import { createRandom, type Random } from '@plant-store/harness/random'
import { History, kinds } from './history.ts'
import { readStore } from './kill.ts'
import { recorded } from './operations.ts'
import { type Circumstances, type Finding, figure } from './part.ts'
import { startProgram } from './program.ts'
import type { Programs } from './programs.ts'

/** The errors of the disk, injected into calls that only the store makes. */
const faults = [
  ['an fsync that fails', 'fsync,fdatasync:error=EIO'],
  ['a disk that is full', 'pwrite64:error=ENOSPC'],
  ['a write that fails', 'pwrite64:error=EIO'],
] as const

const clients = 8
const ids = Array.from({ length: 40 }, (_, n) => BigInt(n))
/** Connections that ask `/readyz`: enough to reach every HTTP thread. */
const probes = 12
const settleTimeoutMs = 20_000

/**
 * Makes the disk fail under a load. Clients must get 503, nothing may count as done that
 * is not, and `/readyz` must report the outage while it lasts. Afterwards the program
 * must recover, or be killed at once and open with every answered change.
 */
export async function runDiskFaults(circumstances: Circumstances): Promise<Finding> {
  const { seed, scale, programs } = circumstances
  const random = createRandom(seed)
  const failures: string[] = []
  const skipped: string[] = []
  let injected = 0
  let told = 0
  if (!hasStrace) {
    skipped.push('faults of calls: strace is not installed')
  }
  const rounds = hasStrace ? Math.ceil(3 * scale) : 0
  for (const [what, injection] of faults) {
    for (let round = 0; round < rounds; round++) {
      injected++
      // Every third program is killed while the disk fails.
      const killed = injected % 3 === 0
      const seen = await failOnce(injection, random, killed, programs)
      const where = `${what}${killed ? ', then killed' : ''}`
      failures.push(...seen.failures.map(text => `${where}: ${text}`))
      told += seen.told
    }
  }
  using folder = temporaryFolder()
  const mounting = ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder.path]
  const mounted = spawnSync('mount', mounting, { encoding: 'utf8', timeout: 10_000 })
  const small = (text: string) => `a small disk that fills: ${text}`
  if (mounted.status === 0) {
    using disk = new DisposableStack()
    disk.defer(() => spawnSync('umount', [folder.path]))
    injected++
    failures.push(...(await fillDisk(folder.path, programs)).map(small))
  } else {
    const reason = mounted.error?.message ?? mounted.stderr.trim()
    skipped.push(small(`no disk can be mounted here (${reason})`))
  }
  return {
    tried: `${injected} faults of the disk; ${figure(told)} changes were told that it failed`,
    times: injected,
    failures,
    skipped,
  }
}

async function failOnce(
  injection: string,
  random: Random,
  killed: boolean,
  programs: Programs,
) {
  using folder = temporaryFolder()
  const options = {
    databaseUrl: `file:${join(folder.path, 'plants.db')}`,
    command: programs.server,
  }
  const failures: string[] = []
  const expectSoon = expectingSoon(failures)
  const history = new History()
  const { counts } = history
  {
    await using program = await startProgram(options)
    const act = recorded(program.operations, history)
    let isOver = false
    const work = async () => {
      while (!isOver) {
        const name = `n${random.below(2 ** 30)}-${random.below(2 ** 30)}`
        const { is } = await act(random.pick(kinds), random.pick(ids), { name })
        // During the outage an operation fails at once, so a client should not retry at
        // once.
        if (is === 'unknown') {
          await sleep(20)
        }
      }
    }
    const working = Array.from({ length: clients }, () =>
      work().catch(error => failures.push(error.message)),
    )
    const before = counts.unknown
    const strace = await trace(program.pid, injection)
    assert(strace, 'strace may not attach')
    await expectSoon('a change that is told of the fault', () => counts.unknown > before)
    await expectSoon('to be not ready', () => everyThreadSays(503, program))
    const read = await program.operations.act('read', -1n)
    if (read.is !== 'absent') {
      failures.push(`a read is told ${read.is}`)
    }
    if (killed) {
      isOver = true
      await program.end('SIGKILL')
      await strace.detach()
    } else {
      await strace.detach()
      await expectSoon('to be ready', () => everyThreadSays(200, program))
      const { done } = counts
      await expectSoon('changes that succeed again', () => counts.done > done + 50)
      isOver = true
    }
    await Promise.all(working)
    if (!killed && !program.isRunning()) {
      failures.push('it ended')
    }
  }
  const told = counts.unknown
  // A new process must find exactly what was answered.
  await using program = await startProgram(options)
  failures.push(...history.settle(await readStore(program.operations)))
  return { failures, told }
}

/** Waits for a condition, and adds a failure if it does not come true. */
const expectingSoon =
  (failures: string[]) =>
  (what: string, holds: () => boolean | Promise<boolean>): Promise<unknown> =>
    until(what, holds, settleTimeoutMs).catch(error => failures.push(error.message))

/** Returns whether `/readyz` answers this on each of several new connections. */
async function everyThreadSays(wanted: number, { url }: Server) {
  const statuses = Array.from({ length: probes }, async () => {
    const answer = await fetch(`${url}/readyz`, { headers: { connection: 'close' } })
    await answer.arrayBuffer()
    return answer.status
  })
  return (await Promise.all(statuses)).every(status => status === wanted)
}

/**
 * Fills a disk to the last byte, frees a little of it, and checks that everything
 * answered is stored.
 */
async function fillDisk(folder: string, programs: Programs): Promise<string[]> {
  const failures: string[] = []
  const expectSoon = expectingSoon(failures)
  const place = join(folder, 'store')
  mkdirSync(place)
  const ballast = join(folder, 'ballast')
  writeFileSync(ballast, Buffer.alloc(1024 * 1024, 1))
  const databaseUrl = `file:${join(place, 'plants.db')}`
  const history = new History()
  {
    // A pass that copies the log finds no space either.
    await using program = await startProgram({ databaseUrl, command: programs.server })
    const { operations } = program
    const act = recorded(operations, history)
    let id = 0n
    const create = async (repeated: number) => {
      id += 1n
      const { is } = await act('create', id, { name: `${id} `.repeat(repeated) })
      return is
    }
    while ((await create(8_000)) === 'done' && id < 1_000n) {}
    if (id >= 1_000n) {
      failures.push('it never filled')
    }
    await expectSoon('to be not ready', async () => {
      // A smaller change may still fit, and as long as one does, the store is ready.
      await create(1)
      return await everyThreadSays(503, program)
    })
    if ((await operations.act('read', 1n)).is !== 'done') {
      failures.push('a read does not work')
    }
    rmSync(ballast)
    await expectSoon('to be ready', () => everyThreadSays(200, program))
    if ((await create(1)) !== 'done') {
      failures.push('a change does not work once there is room again')
    }
    const ended = await program.end('SIGTERM')
    if (ended !== 0) {
      failures.push(`it ended with ${ended}`)
    }
  }
  await using program = await startProgram({ databaseUrl })
  failures.push(...history.settle(await readStore(program.operations)))
  return failures
}
