import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@plant-store/harness'
import { toJson } from '@plant-store/http/testing'
import { type Circumstances, type Finding, figure } from '../part.ts'
import { memoryMib, startProgram, type TestedProgram, token } from '../program.ts'
import { type Load, loads, longList, longNames } from './loads.ts'
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
export async function runOverload({ scale }: Circumstances): Promise<Finding> {
  const failures: string[] = []
  await using program = await startProgram({ environment })
  let lastId = 0n
  const nextId = () => ++lastId
  await storeNames(program)
  const filesBefore = openFiles(program)

  const kept: bigint[] = []
  let peakOfAllMib = 0
  // A short run takes some of them.
  const count = Math.ceil(Object.keys(loads).length * Math.min(1, scale))
  const tried = [
    ['a list of long names', undefined] as const,
    ...Object.entries(loads).slice(0, count),
  ]
  for (const [name, load] of tried) {
    const fail = (what: string) => failures.push(`${name}: ${what}`)
    const healthy = new HealthyClient(program.url, nextId)
    let peakMib = 0
    const watching = setInterval(() => {
      peakMib = Math.max(peakMib, memoryMib(program))
    }, 50)
    const put = load ? putLoad(program, load, nextId) : listNames(program)
    const outcome = await put.catch((error: Error) => {
      fail(error.message)
      return 'failed'
    })
    await healthy.stop()
    clearInterval(watching)
    kept.push(...healthy.created)
    peakOfAllMib = Math.max(peakOfAllMib, peakMib)
    console.log(`  ${name}: ${outcome}; ${healthy}, peak ${peakMib} MiB`)
    healthy.failuresBeside(load).forEach(fail)
    if (peakMib > memoryMibMax) {
      fail(`it took ${peakMib} MiB`)
    }
    if (!program.isRunning()) {
      fail(`the program ended, and printed:\n${program.errors()}`)
      break
    }
    await recovery(program, nextId, filesBefore).catch(error => fail(error.message))
  }
  failures.push(...(await endOf(program, kept)))
  const { length: times } = tried
  const words = 'loads that nobody should put on it, with a healthy client beside'
  return {
    tried: `${times} ${words}; peak ${peakOfAllMib} MiB; ${figure(kept.length)} writes of the healthy client`,
    times,
    failures,
  }
}

/** Stores what lists of long names have: short of a body's bound, and far below it. */
async function storeNames({ client }: TestedProgram): Promise<void> {
  const put = (id: bigint, name: string) =>
    client.ask('PUT', `/plants/${id}`, { body: toJson({ name }) })
  for (let id = -20n; id < 0n; id++) {
    await put(id, 'x'.repeat(100_000))
  }
  for (let n = 1n; n <= longNames.count; n++) {
    await put(longNames.after + n, longNames.name)
  }
}

const authorization = `Bearer ${token}`

/** Reads page by page to the end, with a few clients at once. */
async function listNames({ url }: TestedProgram): Promise<string> {
  let pages = 0
  const listAll = async () => {
    let plants = 0
    for (let path: string | undefined = longList; path !== undefined; ) {
      const answer: Response = await fetch(`${url}${path}`, {
        headers: { authorization },
      })
      const text = await answer.text()
      if (answer.status === 503) {
        await sleep(100)
        continue
      }
      plants += text.split('"id":').length - 1
      pages++
      path = /<([^>]*)>/.exec(answer.headers.get('link') ?? '')?.[1]
    }
    if (plants !== longNames.count) {
      throw new Error(`${plants} of ${longNames.count} plants were listed`)
    }
  }
  await Promise.all([listAll(), listAll(), listAll(), listAll()])
  return `${longNames.count} names of 1 MiB, listed 4 times at once in ${pages} pages`
}

/** Sends requests one after another, and expects an answer to each. */
class HealthyClient {
  readonly created: bigint[] = []
  readonly #failures: string[] = []
  readonly #url: string
  readonly #nextId: () => bigint
  readonly #working: Promise<void>
  #isOver = false
  #answers = 0
  #refusedReads = 0
  #slowestMs = 0

  constructor(url: string, nextId: () => bigint) {
    this.#url = url
    this.#nextId = nextId
    this.#working = this.#work()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#working
  }

  failuresBeside(load: Load | undefined): readonly string[] {
    const failures = this.#failures.slice(0, 3)
    if (this.#answers === 0) {
      failures.push('a healthy client got no answer at all')
    }
    if (load?.refusesNoReader && this.#refusedReads > 0) {
      failures.push(`${this.#refusedReads} reads of a healthy client were refused`)
    }
    return failures
  }

  toString(): string {
    const slowest = Math.round(this.#slowestMs)
    return `${this.#answers} healthy answers, slowest ${slowest} ms`
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      const id = this.#nextId()
      try {
        if (await this.#ask('POST', '/plants', toJson({ id, name: 'healthy' }))) {
          this.created.push(id)
        }
        if (!(await this.#ask('GET', '/plants?limit=10'))) {
          this.#refusedReads++
        }
      } catch (error) {
        this.#failures.push(
          `a healthy client was not answered: ${(error as Error).message}`,
        )
      }
      await sleep(20)
    }
  }

  /** Resolves to whether it was answered with success. */
  async #ask(method: string, path: string, body: string | null = null): Promise<boolean> {
    const startedMs = performance.now()
    const answer = await fetch(`${this.#url}${path}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(healthyAnswerMsMax),
    })
    await answer.arrayBuffer()
    const { status } = answer
    this.#answers++
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedMs)
    // 503 is right under more load than the program can handle.
    if (status !== 200 && status !== 503) {
      this.#failures.push(`a healthy ${method} was answered with ${status}`)
    }
    return status === 200
  }
}

/** Waits until connections are gone and answers are quick again. */
async function recovery(
  program: TestedProgram,
  nextId: () => bigint,
  filesBefore: number,
): Promise<void> {
  // Connections of well-behaved clients may still be open.
  const areGone = () => openFiles(program) <= filesBefore + 20
  await until('connections to go', areGone, recoveryMsMax)
  const isQuick = async () => {
    const startedMs = performance.now()
    const body = toJson({ id: nextId(), name: 'after' })
    const { status } = await program.client.ask('POST', '/plants', { body })
    return status === 200 && performance.now() - startedMs < 500
  }
  await until('quick answers', isQuick, recoveryMsMax)
}

/** Ends the program. Returns what is wrong with its store, its log and its end. */
async function endOf(program: TestedProgram, kept: readonly bigint[]): Promise<string[]> {
  if (!program.isRunning()) {
    return []
  }
  const lost: string[] = []
  for (const id of kept) {
    const { status } = await program.client.ask('GET', `/plants/${id}`)
    if (status !== 200) {
      lost.push(`plant ${id} was answered with success and is not there`)
    }
  }
  const ended = await program.end('SIGTERM')
  const ending = ended === 0 ? [] : [`it ended with ${ended}`]
  return [...lost, ...program.defects(), ...ending]
}
