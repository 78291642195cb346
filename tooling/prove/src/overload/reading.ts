import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@plant-store/harness'
import { toJson } from '@plant-store/http/testing'
import { type TestedProgram, token } from '../program.ts'
import { Connections } from './connections.ts'
import { authorized, openFiles, type Target } from './target.ts'

/** Attacks that request much and read it slowly, late or never. */

/**
 * Plants with names as long as a body allows, behind all others. The emoji makes each
 * character two bytes in memory.
 */
const longNames = {
  count: 130,
  after: 10n ** 15n,
  name: `🌱${'x'.repeat(2 ** 20 - 100)}`,
}
const longListPath = `/plants?limit=1000&after=${longNames.after}`
export const longListRequest = `GET ${longListPath} HTTP/1.1\r\n${authorized}\r\n`

export async function neverRead({ program }: Target): Promise<string> {
  const before = openFiles(program)
  const held = () => openFiles(program) - before
  using connections = (await Connections.open(program.url, 100)).pause()
  const count = connections.sockets.length
  connections.write(`GET /plants?limit=20 HTTP/1.1\r\n${authorized}\r\n`.repeat(200))
  await until('some to be held', () => held() > 0, 40_000)
  // The server must cut them off, as they never end.
  await until('all but a tenth to be cut off', () => held() <= count / 10, 40_000)
  return `${count} connections of 200 requests for 2 MB each, all cut off but ${Math.max(0, held())}`
}

async function storeLongNames({ client }: TestedProgram): Promise<void> {
  const body = toJson({ name: longNames.name })
  for (let n = 1n; n <= longNames.count; n++) {
    await client.ask('PUT', `/plants/${longNames.after + n}`, { body })
  }
}

/** Reads page by page to the end, with a few clients at once. */
export async function listLongNames({ program }: Target): Promise<string> {
  await storeLongNames(program)
  let pages = 0
  const listAll = async () => {
    let plants = 0
    for (let path: string | undefined = longListPath; path !== undefined; ) {
      const answer: Response = await fetch(`${program.url}${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const text = await answer.text()
      if (answer.status === 503) {
        await sleep(100)
        continue
      }
      if (answer.status !== 200) {
        throw new Error(`a list was answered with ${answer.status}`)
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
