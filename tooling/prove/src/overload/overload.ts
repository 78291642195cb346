import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parsePlant } from '@plant-store/domain'
import { temporaryFolder, until } from '@plant-store/harness'
import { toJson } from '@plant-store/http/testing'
import { openStorage } from '@plant-store/persistence'
import type { Circumstances, Finding } from '../part.ts'
import { memoryMib, type TestedProgram, token, withProgram } from '../program.ts'
import { type Load, loads, longNames, nextId } from './loads.ts'
import { openFiles, putLoad } from './put-load.ts'

/** The program's largest peak of memory. More means that a bound is missing somewhere. */
const memoryMibMax = 512
/** The time to answer a well-behaved client, whatever others do. */
const healthyAnswerMsMax = 5_000
const recoveryMsMax = 30_000

/** Time limits short enough to pass within the part's time. */
const environment = {
  LOG_LEVEL: 'info',
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
export async function runOverload(circumstances: Circumstances): Promise<Finding> {
  const { scale, programs } = circumstances
  using folder = temporaryFolder()
  const databaseUrl = `file:${join(folder.path, 'plants.db')}`
  await storeNames(databaseUrl)
  const options = { databaseUrl, environment, command: programs.server }
  return await withProgram(options, async program => {
    const filesBefore = openFiles(program)
    // A short run takes some of them.
    const count = Math.ceil(Object.keys(loads).length * Math.min(1, scale))
    const failures: string[] = []
    let peakOfAllMib = 0
    for (const [name, load] of Object.entries(loads).slice(0, count)) {
      const fail = (what: string) => failures.push(`${name}: ${what}`)
      let isOver = false
      const asking = askHealthily(program, load, () => isOver, fail)
      let peakMib = 0
      const watching = setInterval(() => {
        peakMib = Math.max(peakMib, memoryMib(program))
      }, 50)
      const outcome = await putLoad(program, load).catch((error: Error) => {
        fail(error.message)
        return 'failed'
      })
      isOver = true
      const wellServed = await asking
      clearInterval(watching)
      peakOfAllMib = Math.max(peakOfAllMib, peakMib)
      console.log(`  ${name}: ${outcome}; ${wellServed}, peak ${peakMib} MiB`)
      if (peakMib > memoryMibMax) {
        fail(`it took ${peakMib} MiB`)
      }
      if (!program.isRunning()) {
        fail(`the program ended, and printed:\n${program.errors()}`)
        break
      }
      await recovery(program, filesBefore).catch(error => fail(error.message))
    }
    const words = 'loads that nobody should put on it, with a healthy client beside'
    return {
      tried: `${count} ${words}; peak ${peakOfAllMib} MiB`,
      times: count,
      failures,
    }
  })
}

/** Stores what lists of long names have: short of a body's bound, and far below it. */
async function storeNames(url: string): Promise<void> {
  await using storage = await openStorage({ url })
  const names = Array.from({ length: 20 }, (_, n) => [
    BigInt(-1 - n),
    'x'.repeat(100_000),
  ])
  const all = [...names, ...longNames.ids.map(id => [id, longNames.name])]
  for (const [id, name] of all) {
    await storage.plants.save(parsePlant({ id, name }))
  }
}

/**
 * Asks one request after another until the load is over, and expects an answer to each.
 * Resolves to how well it was served.
 */
async function askHealthily(
  { url }: TestedProgram,
  { refusesNoReader }: Load,
  isOver: () => boolean,
  fail: (what: string) => void,
): Promise<string> {
  let answers = 0
  let slowestMs = 0
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const ask = async (method: string, path: string, body: string | null = null) => {
    const startedMs = performance.now()
    const signal = AbortSignal.timeout(healthyAnswerMsMax)
    const answer = await fetch(url + path, { method, headers, body, signal })
    await answer.arrayBuffer()
    answers++
    slowestMs = Math.max(slowestMs, performance.now() - startedMs)
    // 503 is right under more load than the program can handle.
    const mayRefuse = answer.status === 503 && (method === 'POST' || !refusesNoReader)
    if (!answer.ok && !mayRefuse) {
      fail(`a healthy ${method} was answered with ${answer.status}`)
    }
  }
  while (!isOver()) {
    try {
      await ask('POST', '/plants', toJson({ id: nextId(), name: 'healthy' }))
      await ask('GET', '/plants?limit=10')
    } catch (error) {
      fail(`a healthy client was not answered: ${(error as Error).message}`)
    }
    await sleep(20)
  }
  if (answers === 0) {
    fail('a healthy client got no answer at all')
  }
  return `${answers} healthy answers, slowest ${Math.round(slowestMs)} ms`
}

/** Waits until connections are gone and answers are quick again. */
async function recovery(program: TestedProgram, filesBefore: number): Promise<void> {
  // Connections of well-behaved clients may still be open.
  const areGone = () => openFiles(program) <= filesBefore + 20
  await until('connections to go', areGone, recoveryMsMax)
  const isQuick = async () => {
    const startedMs = performance.now()
    const body = toJson({ id: nextId(), name: 'after' })
    const { status } = await program.client.ask('POST', '/plants', { body })
    return status < 300 && performance.now() - startedMs < 500
  }
  await until('quick answers', isQuick, recoveryMsMax)
}
