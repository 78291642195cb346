import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A well-behaved client of a server, until it gets SIGTERM. It is a process of its own,
 * so that it never waits for the one that makes the load. It writes how it was served to
 * standard output, and what is wrong with it to standard error, a line each.
 */

/**
 * The time to answer it, whatever other clients do. Time in which a thread of the server
 * waits for a processor, which others use, does not count.
 */
const answerMsMax = 5_000
/** The time after which an answer counts as missing, on any machine. */
const hangMsMax = 60_000

/** `refusals` are those that it accepts, such as `GET 503`. */
const [url, pid, token, ...refusals] = process.argv.slice(2)
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
let isOver = false
process.once('SIGTERM', () => {
  isOver = true
})
let answers = 0
let slowestMs = 0

async function ask(method: string, path: string, body: string | null = null) {
  const startedMs = performance.now()
  const waitsBefore = processorWaits()
  try {
    const signal = AbortSignal.timeout(hangMsMax)
    const answer = await fetch(url + path, { method, headers, body, signal })
    await answer.arrayBuffer()
    const waits = processorWaits().map((waitMs, n) => waitMs - (waitsBefore[n] ?? 0))
    const elapsedMs = performance.now() - startedMs - Math.max(...waits)
    answers++
    slowestMs = Math.max(slowestMs, elapsedMs)
    if (elapsedMs > answerMsMax) {
      throw new Error(`${method} took longer than ${answerMsMax} ms`)
    }
    if (!answer.ok && !refusals.includes(`${method} ${answer.status}`)) {
      throw new Error(`${method} was answered with ${answer.status}`)
    }
  } catch (error) {
    console.error(`a healthy client failed: ${(error as Error).message}`)
  }
}

/**
 * Returns how long each thread of the server has waited for a processor so far, in ms.
 */
function processorWaits(): number[] {
  const threads = `/proc/${pid}/task`
  return readdirSync(threads).map(id => {
    const [, waitNs] = readFileSync(`${threads}/${id}/schedstat`, 'utf8').split(' ')
    return Number(waitNs) / 1e6
  })
}

await ask('GET', '/plants')
process.stdout.write('a healthy client: ')
while (!isOver) {
  await ask('PUT', '/plants/1000000000000', `{"name":"healthy ${answers}"}`)
  await ask('GET', '/plants?limit=10')
  await sleep(20)
}
console.log(`${answers} answers, slowest ${Math.round(slowestMs)} ms`)
