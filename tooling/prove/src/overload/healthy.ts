import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A well-behaved client of a server, until it gets SIGTERM or is served badly. It is a
 * process of its own, so that it never waits for the one that makes the load. It writes
 * how it was served to standard output, and ends with an error if that was wrong.
 *
 * Its unit of time is the page at `longTarget` without a load, because a limit in seconds
 * would depend on the machine. Each answer may take `pagesMax` of them. `refusals` are
 * those that it accepts, such as `GET 503`.
 */

const [url, pid, token, longTarget = '', pagesMax, refusals = ''] = process.argv.slice(2)
const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
let isOver = false
process.once('SIGTERM', () => {
  isOver = true
})
let pageMs = Number.POSITIVE_INFINITY
let slowestMs = 0
let answers = 0

async function ask(method: string, target: string, body: string | null = null) {
  const elapsedMs = startClock()
  const checking = setInterval(() => {
    assert(elapsedMs() < Number(pagesMax) * pageMs, `no answer to ${method} in time`)
  }, 200)
  const answer = await fetch(url + target, { method, headers, body })
  await answer.arrayBuffer()
  clearInterval(checking)
  const outcome = `${method} ${answer.status}`
  assert(answer.ok || refusals.includes(outcome), outcome)
  answers++
  slowestMs = Math.max(slowestMs, elapsedMs())
}

/**
 * Returns a clock that stands still while the busiest thread of the server waits for a
 * processor, which others use.
 */
function startClock() {
  const startedMs = performance.now()
  const before = threadTimes()
  return () => {
    const times = threadTimes().map((all, n) =>
      all.map((ns, kind) => ns - (before[n]?.[kind] ?? 0)),
    )
    const [[, waitedNs = 0] = []] = times.sort(([one = 0], [other = 0]) => other - one)
    return performance.now() - startedMs - waitedNs / 1e6
  }
}

/** Returns how long each thread of the server ran, and waited for a processor, in ns. */
const threadTimes = () =>
  readdirSync(`/proc/${pid}/task`).map(id =>
    readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ').map(Number),
  )

const aloneMs = startClock()
while (answers < 10) {
  await ask('GET', longTarget)
}
pageMs = aloneMs() / answers
slowestMs = 0
process.stdout.write('a healthy client: ')
while (!isOver) {
  await ask('PUT', '/plants/1000000000000', `{"name":"healthy ${answers}"}`)
  await ask('GET', '/plants?limit=10&after=0')
  await sleep(20)
}
process.stdout.write(
  `${answers} answers, slowest ${Math.round(slowestMs / pageMs)} pages of ${Math.round(pageMs)} ms`,
)
