import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '@plant-store/harness'
import { createRandom } from '@plant-store/harness/random'
import { type Circumstances, type Finding, figure } from './part.ts'
import { memoryMib, startProgram, token } from './program.ts'

interface Batch {
  readonly firstId: number
  readonly lines: number
  isCounted: boolean
}

interface Answered {
  readonly status: number
  readonly created: number
  readonly existing: number
  readonly refused: number
  readonly error: number
}

const batchesAtOnce = 3

/**
 * Kills the program at random moments of batches. Counted plants must then be stored, and
 * the same batches sent again must add only the rest. Then one batch of ten million lines
 * must not make the program grow.
 */
export async function runBatches(circumstances: Circumstances): Promise<Finding> {
  const { seed, programs, scale } = circumstances
  const random = createRandom(seed)
  using folder = temporaryFolder()
  const databaseUrl = `file:${join(folder.path, 'plants.db')}`
  const options = {
    databaseUrl,
    command: programs.server,
    environment: { SHUTDOWN_TIMEOUT: '2s' },
  }
  const failures: string[] = []
  const endings = { answered: 0, refused: 0, cut: 0 }
  const wanted = Math.ceil(30 * scale)
  let before: Batch[] = []
  let lost = 0
  let rounds = 0

  for (let nextId = 1; ; rounds++) {
    await using program = await startProgram(options)
    lost += await sendAgain(program.url, before, failures)
    if (rounds === wanted) {
      break
    }

    const isKilled = random.chance(0.7)
    before = Array.from({ length: batchesAtOnce }, () => {
      const batch = {
        firstId: nextId,
        lines: 1 + random.below(linesMax),
        isCounted: false,
      }
      nextId += batch.lines
      return batch
    })
    const sending = before.map(async (batch, index) => {
      // One batch never ends while the program is stopped. It must be answered all the
      // same.
      const isEndless = !isKilled && index === 0
      const answer = await send(
        program.url,
        linesOf(batch.firstId, batch.lines),
        isEndless,
      )
      const ending = endingOf(answer)
      batch.isCounted = ending === 'answered'
      endings[ending]++
      if (ending === 'refused' && answer?.error !== 50303) {
        failures.push(
          `batch ${batch.firstId} was answered with ${JSON.stringify(answer)}`,
        )
      }
      if (isEndless && ending === 'cut') {
        failures.push('a server that was told to stop did not answer')
      }
    })
    await sleep(random.below(400))
    await program.end(isKilled ? 'SIGKILL' : 'SIGTERM')
    await Promise.all(sending)
  }
  if (lost > 0) {
    failures.push(`${lost} plants that were counted are lost`)
  }

  const long = await sendLongBatch(circumstances, failures)
  const ends = `${figure(rounds)} ends under ${batchesAtOnce} batches`
  return { tried: `${ends}: ${describe(endings)}; ${long}`, times: rounds, failures }
}

const linesMax = 20_000
const longBatchLines = 10_000_000

/** How much a process may grow after the first tenth of a batch. */
const growthMaxMiB = 64

function endingOf(answer: Answered | undefined): 'answered' | 'refused' | 'cut' {
  if (answer === undefined) {
    return 'cut'
  }
  return answer.status === 200 ? 'answered' : 'refused'
}

function describe(endings: Readonly<Record<string, number>>): string {
  const counts = Object.entries(endings)
  return counts.map(([ending, count]) => `${figure(count)} ${ending}`).join(', ')
}

/** Sends batches again, and returns how many plants of counted ones were not there. */
async function sendAgain(
  url: string,
  batches: readonly Batch[],
  failures: string[],
): Promise<number> {
  let lost = 0
  for (const { firstId, lines, isCounted } of batches) {
    const again = await send(url, linesOf(firstId, lines))
    const isWhole = again?.status === 200 && again.created + again.existing === lines
    if (!isWhole || again.refused > 0) {
      const what = JSON.stringify(again)
      failures.push(`batch ${firstId} came to ${what} when it was sent again`)
    }
    if (isCounted && again !== undefined) {
      lost += again.created
    }
  }
  return lost
}

/** Every tenth line is a new plant. The others are one stored plant. */
async function sendLongBatch(
  circumstances: Circumstances,
  failures: string[],
): Promise<string> {
  await using program = await startProgram({ command: circumstances.programs.server })
  const wanted = longBatchLines * circumstances.scale
  let sent = 0
  let early = 0
  let most = 0
  function* lines() {
    for (; sent < wanted; sent++) {
      if (sent % 100_000 === 0) {
        const now = memoryMib(program)
        if (sent <= wanted / 10) {
          early = Math.max(early, now)
        }
        most = Math.max(most, now)
      }
      yield sent % 10 === 0
        ? `{"id":${sent},"name":"plant ${sent}"}\n`
        : '{"id":0,"name":"plant 0"}\n'
    }
  }
  const answer = await send(program.url, lines())
  const created = Math.ceil(sent / 10)
  if (answer?.created !== created || answer.existing !== sent - created) {
    failures.push(`${sent} lines came to ${JSON.stringify(answer)}`)
  }
  const grown = Math.round(most - early)
  if (grown > growthMaxMiB) {
    failures.push(`a batch of ${sent} lines made the program grow by ${grown} MiB`)
  }
  return `${figure(sent)} lines in one batch, at most ${Math.round(most)} MiB`
}

function* linesOf(firstId: number, count: number) {
  for (let id = firstId; id < firstId + count; id++) {
    yield `{"id":${id},"name":"plant ${id}"}\n`
  }
}

const pieceLength = 64 * 1024

/** Resolves to `undefined` without an answer. */
async function send(
  url: string,
  lines: Iterable<string>,
  isEndless = false,
): Promise<Answered | undefined> {
  const { hostname, port } = new URL(url)
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/x-ndjson',
  }
  const outgoing = request({
    hostname,
    port,
    method: 'POST',
    path: '/plants/batch',
    headers,
  })
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
  let isOver = false
  const over = answered
    .catch(() => {})
    .finally(() => {
      isOver = true
    })
  try {
    let piece = ''
    for (const line of lines) {
      piece += line
      if (piece.length < pieceLength) {
        continue
      }
      if (!outgoing.write(piece)) {
        await Promise.race([once(outgoing, 'drain'), over])
      }
      if (isOver) {
        break
      }
      piece = ''
    }
    if (isEndless) {
      outgoing.write(piece)
    } else {
      outgoing.end(piece)
    }
    const [incoming] = await answered
    const body = JSON.parse(`${Buffer.concat(await incoming.toArray())}`)
    return { status: incoming.statusCode, ...body }
  } catch {
    return undefined
  } finally {
    outgoing.destroy()
  }
}
