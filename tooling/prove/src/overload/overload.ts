import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePlant } from '@plant-store/domain'
import { launch, type Program, temporaryFolder, until } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import type { Circumstances, Finding } from '../part.ts'
import { type TestedProgram, token, withProgram } from '../program.ts'
import { type Load, loads, nextId, storedPlants } from './loads.ts'
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
export async function runOverload({ scale, programs }: Circumstances): Promise<Finding> {
  using folder = temporaryFolder()
  const databaseUrl = `file:${join(folder.path, 'plants.db')}`
  {
    await using storage = await openStorage({ url: databaseUrl })
    for (const plant of storedPlants) {
      await storage.plants.save(parsePlant(plant))
    }
  }
  const options = { databaseUrl, environment, command: programs.server }
  return await withProgram(options, async program => {
    const filesBefore = openFiles(program)
    const all = Object.entries(loads)
    // A short run takes some of them.
    const tried = all.slice(0, Math.ceil(all.length * scale))
    const failures: string[] = []
    const peaksMib: number[] = []
    for (const [name, load] of tried) {
      const fail = (what: string) => failures.push(`${name}: ${what}`)
      await using client = await startHealthyClient(program, load)
      const { outcome, isRight } = await putLoad(program.url, load)
      if (!isRight) {
        fail(`wrong or missing answers: ${outcome}`)
      }
      await client.end()
      client.errors().split('\n').filter(Boolean).forEach(fail)
      if (!program.isRunning()) {
        break
      }
      const peakMib = peakMemoryMib(program)
      console.log(`  ${name}: ${outcome}; ${client.output().trim()}, peak ${peakMib} MiB`)
      if (peakMib > memoryMibMax) {
        fail(`it took ${peakMib} MiB`)
      }
      peaksMib.push(peakMib)
      await recovery(program, filesBefore).catch(error => fail(error.message))
    }
    return {
      tried: `${tried.length} loads that nobody should put on it, with a healthy client beside; peak ${Math.max(0, ...peaksMib)} MiB`,
      times: tried.length,
      failures,
    }
  })
}

const openFiles = ({ pid }: Program) => readdirSync(`/proc/${pid}/fd`).length

/** Returns the largest memory of a program since the healthy client was answered. */
function peakMemoryMib({ pid }: Program) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1_024)
}

/** Starts a client before the load, and resolves when it is answered. */
async function startHealthyClient(program: TestedProgram, load: Load) {
  const file = join(import.meta.dirname, 'healthy.ts')
  const { refusals = ['PUT 503', 'GET 503'] } = load
  const args = [program.url, `${program.pid}`, token, ...refusals]
  const client = launch([process.execPath, file, ...args])
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
  // Connections of well-behaved clients may still be open.
  const areGone = () => openFiles(program) <= filesBefore + 20
  await until('connections to go', areGone, recoveryMsMax)
  const isQuick = async () => {
    const startedMs = performance.now()
    const body = `{"id":${nextId()},"name":"after"}`
    const { status } = await program.client.ask('POST', '/plants', { body })
    return status < 300 && performance.now() - startedMs < 500
  }
  await until('quick answers', isQuick, recoveryMsMax)
}
