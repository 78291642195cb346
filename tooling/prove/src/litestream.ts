import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { launch, runCommand, temporaryFolder, until } from '@plant-store/harness'
import { fetchLitestream } from '@plant-store/harness/litestream'
import { createRandom } from '@plant-store/harness/random'
import { toValue } from './history.ts'
import { readRange } from './kill.ts'
import { type Circumstances, type Finding, figure, type Part, timeIsUp } from './part.ts'
import { startProgram } from './program.ts'

export const litestreamPart: Part = { name: 'litestream', share: 0.03, run: runLitestream }

/** Litestream reads the log once a second, and once a second sends what it has read. */
const lostMsMax = 2_500
const clients = 4

/**
 * Replicates the store with litestream, kills both under a load, and serves what litestream restores from the replica.
 * Only changes answered shortly before the kill may be lost.
 */
export async function runLitestream(circumstances: Circumstances, rounds = 4): Promise<Finding> {
  const litestream = fetchLitestream()
  const random = createRandom(circumstances.seed)
  const wanted = Math.ceil(rounds * circumstances.scale)
  const failures: string[] = []
  let [times, answered, lost, lostMs] = [0, 0, 0, 0]
  for (; times < wanted && !timeIsUp(circumstances); times++) {
    using folder = temporaryFolder()
    const replica = `file://${join(folder.path, 'replica')}`
    const restored = join(folder.path, 'restored.db')
    const loadMs = lostMsMax + 1_000 + random.below(2_000)
    const { answers, killedAtMs } = await killReplicated(
      litestream,
      join(folder.path, 'plants.db'),
      replica,
      loadMs,
    )
    answered += answers.size

    await using restoring = launch([litestream, 'restore', '-o', restored, replica])
    if ((await restoring.ended) !== 0) failures.push(`restore: ${restoring.errors()}`)
    const options = { databaseUrl: `file:${restored}` }
    const check = await runCommand(['check', '--json'], options)
    if (check.code !== 0) failures.push(`check: ${check.stderr}`)

    await using program = await startProgram(options)
    const found = await readRange(program.operations, -1n, 2n ** 62n)
    for (const [id, atMs] of answers) {
      if (found.has(id)) continue
      lost++
      lostMs = Math.max(lostMs, killedAtMs - atMs)
      if (killedAtMs - atMs > lostMsMax)
        failures.push(`plant ${id} is lost, ${Math.round(killedAtMs - atMs)} ms after its answer`)
    }
    for (const [id, value] of found)
      if (value !== storedOf(id)) failures.push(`plant ${id} was restored as ${value}`)
    const next = await program.operations.create(-1n, textOf(-1n))
    if (next.is !== 'done') failures.push(`a create in the restored store: ${next.is}`)
    if (![...answers.values()].some(atMs => killedAtMs - atMs > lostMsMax))
      failures.push('nothing was answered early enough to be kept for sure')
  }
  return {
    tried: `${times} of ${wanted} kills of the program and litestream; of ${figure(answered)} answered creates ${figure(lost)} are not in the replica, the oldest answered ${Math.round(lostMs)} ms before the kill`,
    times,
    failures,
  }
}

const textOf = (id: bigint) => ({ name: `plant ${id}`, tag: 'x'.repeat(Number((id + 1n) % 300n)) })
const storedOf = (id: bigint) => toValue(textOf(id))

/** Resolves to the created ids, each with the time of its answer. */
async function killReplicated(litestream: string, file: string, replica: string, loadMs: number) {
  await using program = await startProgram({ databaseUrl: `file:${file}` })
  await using replicating = launch([litestream, 'replicate', file, replica])
  const log = () => replicating.output() + replicating.errors()
  await until('the first snapshot', () => {
    replicating.assertRunning()
    return log().includes('snapshot written')
  })
  const answers = new Map<bigint, number>()
  let nextId = 0n
  const work = async () => {
    for (;;) {
      const id = nextId++
      const { is } = await program.operations.create(id, textOf(id))
      if (is !== 'done') return
      answers.set(id, performance.now())
    }
  }
  const working = Array.from({ length: clients }, work)
  await sleep(loadMs)
  const killedAtMs = performance.now()
  await Promise.all([program.end('SIGKILL'), replicating.end('SIGKILL')])
  await Promise.all(working)
  return { answers, killedAtMs }
}
