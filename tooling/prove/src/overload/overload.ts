import { setTimeout as sleep } from 'node:timers/promises'
import { type Server, until } from '@plant-store/harness'
import { type Client, toJson } from '@plant-store/http/testing'
import { type Circumstances, type Finding, figure } from '../part.ts'
import { memoryMib, startProgram, token } from '../program.ts'
import { listLongNames, longListRequest, neverRead } from './reading.ts'
import {
  flood,
  idleConnections,
  pipeline,
  sendSlowly,
  spacesInAuthorization,
  tenTimesTheRate,
} from './sending.ts'
import {
  type Attack,
  authorized,
  healthRequest,
  openFiles,
  type Target,
} from './target.ts'
import {
  answered,
  batchesOf,
  chunks,
  endlessBodies,
  longPage,
  longRefusedLines,
  manyFields,
  post,
  unfinishedLines,
  unread,
} from './unread.ts'

const attacks: Readonly<Record<string, Attack>> = {
  '10 times the sustainable rate': tenTimesTheRate,
  'idle connections': idleConnections,
  // Opening all of them takes longer than a header section may.
  'idle connections after many fields': answered(9_900, manyFields, 200, 408, 503),
  'huge headers': flood({
    head: `GET /plants HTTP/1.1\r\n${authorized}`,
    piece: Array.from({ length: 100 }, (_, n) => `x-${n}: ${'y'.repeat(150)}\r\n`).join(
      '',
    ),
    status: 431,
  }),
  'endless bodies': flood({
    head: `POST /plants HTTP/1.1\r\n${authorized}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    piece: `4000\r\n${' '.repeat(0x4000)}\r\n`,
    status: 413,
    // More than may be held at once.
    otherwise: 503,
  }),
  pipelining: pipeline,
  'clients that never read': neverRead,
  'a list of long names': listLongNames,
  'requests behind one whose answer is not read': unread(
    1,
    longListRequest,
    healthRequest.repeat(100_000),
  ),
  'slow readers of long lists': unread(150, longListRequest),
  'slow readers of the API reference': unread(2_000, longPage),
  'spaces in Authorization': spacesInAuthorization,
  'tiny chunks behind answers that are not read': unread(
    100,
    longPage.repeat(6),
    post + chunks('x', 30_000),
  ),
  'tiny requests on many connections': unread(800, healthRequest.repeat(5_000)),
  'bodies on many connections': unread(
    6_000,
    longPage.repeat(6),
    post + chunks('x'.repeat(1_000), 60),
  ),
  'batches of tiny chunks': batchesOf(60, chunks('x', 120_000)),
  'batches of long refused lines': batchesOf(12, longRefusedLines),
  'batches of brackets': batchesOf(40, chunks('['.repeat(2 ** 20 - 1)) + chunks('\n')),
  'unfinished lines beside readers': unfinishedLines,
  'endless bodies after a refusal': endlessBodies(chunks('x', 30_000)),
  'endless bodies beyond the connection limit': endlessBodies(
    chunks(' '.repeat(60_000), 4),
    1_000,
  ),
  'pipelined descriptions': answered(
    50,
    'GET /openapi.json HTTP/1.1\r\nhost: h\r\n\r\n'.repeat(5_000),
    200,
  ),
  'slow headers': sendSlowly(`GET /plants HTTP/1.1\r\n${authorized}x: `),
  'slow bodies': sendSlowly(
    `POST /plants HTTP/1.1\r\n${authorized}content-type: application/json\r\ncontent-length: 99\r\n\r\n`,
  ),
}

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
 * Attacks the program in several ways while a well-behaved client continues. That client
 * must be answered, the memory must stay within its bound, and the program must recover
 * completely.
 */
export async function runOverload({ scale }: Circumstances): Promise<Finding> {
  const failures: string[] = []
  const times = Object.keys(attacks).length
  const skipped: string[] = []
  let peakOfAllMib = 0
  await using program = await startProgram({ environment })
  const { client } = program
  let lastId = 0n
  const nextId = () => ++lastId
  await createLongNames(client)
  await (await fetch(`${program.url}/healthz`)).arrayBuffer()
  const filesBefore = openFiles(program)

  const kept: bigint[] = []
  for (const [name, attack] of Object.entries(attacks)) {
    const fallShort = (why: string) => skipped.push(`${name}: ${why}`)
    const fail = (what: string) => failures.push(`${name}: ${what}`)
    const healthy = startHealthyClient(program, nextId)
    const target: Target = {
      program,
      scale,
      nextId,
      healthyAnswers: () => healthy.answers,
      fallShort,
    }
    let peakMib = 0
    const watching = setInterval(() => {
      peakMib = Math.max(peakMib, memoryMib(program))
    }, 50)
    const outcome = await attack(target).catch((error: Error) => {
      fail(error.message)
      return 'failed'
    })
    await healthy.stop()
    kept.push(...healthy.created)
    clearInterval(watching)
    peakOfAllMib = Math.max(peakOfAllMib, peakMib)
    console.log(
      `  ${name}: ${outcome}; ${healthy.answers} healthy answers, slowest ${Math.round(healthy.slowestMs)} ms, peak ${peakMib} MiB`,
    )
    healthy.failures.slice(0, 3).forEach(fail)
    if (peakMib > memoryMibMax) {
      fail(`it took ${peakMib} MiB`)
    }
    if (!program.isRunning()) {
      fail(`the program ended, and printed:\n${program.errors()}`)
      return { tried: `${times} loads`, times, failures, skipped }
    }
    await recovery(target, filesBefore).catch((error: Error) => fail(error.message))
  }
  for (const id of kept) {
    const { status } = await client.ask('GET', `/plants/${id}`)
    if (status !== 200) {
      failures.push(`plant ${id} was answered with success and is not there`)
    }
  }
  failures.push(...program.defects())
  const ended = await program.end('SIGTERM')
  if (ended !== 0) {
    failures.push(`it ended with ${ended}`)
  }
  return {
    tried: `${times} loads that nobody should put on it, with a healthy client beside; peak ${peakOfAllMib} MiB; ${figure(kept.length)} writes of the healthy client`,
    times,
    failures,
    skipped,
  }
}

/** Creates the plants that lists of long names have. */
async function createLongNames(client: Client): Promise<void> {
  const name = 'x'.repeat(100_000)
  for (let id = -20n; id < 0n; id++) {
    await client.ask('POST', '/plants', { body: toJson({ id, name }) })
  }
}

/** Sends requests one after another, and expects an answer to each. */
function startHealthyClient({ url }: Server, nextId: () => bigint) {
  let isOver = false
  const ask = async (method: string, path: string, body: string | null = null) => {
    const beganAt = performance.now()
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(healthyAnswerMsMax),
    })
    await answer.arrayBuffer()
    healthy.answers++
    healthy.slowestMs = Math.max(healthy.slowestMs, performance.now() - beganAt)
    // 503 is right under more load than the program can handle.
    if (answer.status !== 200 && answer.status !== 503) {
      healthy.failures.push(`a healthy ${method} was answered with ${answer.status}`)
    }
    return answer.status === 200
  }
  const work = async () => {
    while (!isOver) {
      const id = nextId()
      try {
        if (await ask('POST', '/plants', toJson({ id, name: 'healthy' }))) {
          healthy.created.push(id)
          await ask('GET', `/plants/${id}`)
        }
      } catch (error) {
        healthy.failures.push(
          `a healthy client was not answered: ${(error as Error).message}`,
        )
      }
      await sleep(20)
    }
    if (healthy.answers === 0) {
      healthy.failures.push('a healthy client got no answer at all')
    }
  }
  const healthy = {
    answers: 0,
    slowestMs: 0,
    failures: [] as string[],
    created: [] as bigint[],
    async stop() {
      isOver = true
      await working
    },
  }
  const working = work()
  return healthy
}

/** Waits until connections are gone and answers are quick again. */
async function recovery({ program, nextId }: Target, filesBefore: number): Promise<void> {
  // Connections of well-behaved clients may still be open.
  await until(
    'connections to go',
    () => openFiles(program) <= filesBefore + 20,
    recoveryMsMax,
  )
  const isQuick = async () => {
    const beganAt = performance.now()
    const body = toJson({ id: nextId(), name: 'after' })
    const { status } = await program.client.ask('POST', '/plants', { body })
    return status === 200 && performance.now() - beganAt < 500
  }
  await until('quick answers', isQuick, recoveryMsMax)
}
