import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { launch, until } from '@plant-store/harness'
import type { Part } from '../part.ts'
import { type TestedProgram, token, withProgram } from '../program.ts'
import { type Load, loads, longTarget, storedNames } from './loads.ts'
import { putLoad } from './put-load.ts'

/** The program's largest peak of memory. More means that a bound is missing somewhere. */
const memoryMibMax = 512
const recoveryMsMax = 30_000

/** Time limits short enough to pass within the part's time. */
const environment = {
  HEADERS_TIMEOUT: '8s',
  REQUEST_TIMEOUT: '10s',
  DATABASE_TIMEOUT: '2s',
  INACTIVITY_TIMEOUT: '5s',
  KEEP_ALIVE_TIMEOUT: '12s',
}

/**
 * Puts one load after another on the program while a well-behaved client continues. That
 * client must be answered, the memory must stay within its bound, and the program must
 * recover completely.
 */
export const runOverload: Part = ({ scale, programs }) =>
  withProgram({ environment, command: programs.server }, async program => {
    for (const [n, name] of storedNames.entries()) {
      const { is } = await program.operations.act('replace', BigInt(n + 1), { name })
      assert.equal(is, 'done', `plant ${n + 1}`)
    }
    const filesBefore = openFiles(program)
    // A short run takes some of them.
    const tried = Object.entries(loads).filter((_, n, all) => n < all.length * scale)
    const failures: string[] = []
    for (const [name, load] of tried) {
      await using client = await startHealthyClient(program, load)
      const { outcome, isRight } = await putLoad(program.url, load)
      await client.end()
      program.assertRunning()
      const peakMib = peakMemoryMib(program)
      console.log(`  ${name}: ${outcome}; ${client.output()}, peak ${peakMib} MiB`)
      const wrong = [
        isRight ? '' : `wrong or missing answers: ${outcome}`,
        client.errors(),
        peakMib > memoryMibMax ? `it took ${peakMib} MiB` : '',
        await recovery(program, filesBefore).catch(error => error.message),
      ]
      failures.push(...wrong.filter(Boolean).map(what => `${name}: ${what}`))
    }
    return {
      tried: `${tried.length} loads that nobody should put on it, with a healthy client beside`,
      times: tried.length,
      failures,
    }
  })

const openFiles = ({ pid }: TestedProgram) => readdirSync(`/proc/${pid}/fd`).length

/** Returns the largest memory of a program since the healthy client was answered. */
function peakMemoryMib({ pid }: TestedProgram) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1_024)
}

/** Starts a client before the load, and resolves when it is answered. */
async function startHealthyClient(program: TestedProgram, load: Load) {
  const { pagesMax = 50, refusals = 'PUT 503, GET 503' } = load
  const client = launch([
    process.execPath,
    join(import.meta.dirname, 'healthy.ts'),
    program.url,
    `${program.pid}`,
    token,
    longTarget,
    `${pagesMax}`,
    refusals,
  ])
  await until('a healthy client to be answered', () => {
    client.assertRunning()
    return client.output() !== ''
  })
  // Forgets the peak of memory so far.
  writeFileSync(`/proc/${program.pid}/clear_refs`, '5')
  return client
}

/** Waits until connections are gone and answers are quick again. */
async function recovery(program: TestedProgram, filesBefore: number) {
  await until(
    'quick answers and connections to go',
    async () => {
      const startedMs = performance.now()
      const { is } = await program.operations.act('replace', 0n, { name: 'after' })
      const isQuick = is === 'done' && performance.now() - startedMs < 500
      // Connections of well-behaved clients may still be open.
      return isQuick && openFiles(program) <= filesBefore + 20
    },
    recoveryMsMax,
  )
}
