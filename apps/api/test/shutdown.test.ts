import { existsSync } from 'node:fs'
import { parsePlantId } from '@plant-store/domain'
import { until } from '@plant-store/harness'
import type { Wire } from '@plant-store/http/testing'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { connectRaw, create, rawPost, start as startServer, token } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { listen } from './listener.ts'

function start(databaseUrl: string, environment: Record<string, string> = {}) {
  return startServer({ HTTP_THREADS: '2', ...environment }, { databaseUrl })
}

/** Creates a plant. Resolves to whether the answer announces the connection's end. */
async function createOver(client: Wire, id: bigint): Promise<boolean> {
  const name = `plant ${id}`
  client.send(rawPost(token, `{"id": ${id}, "name": "${name}"}`))
  const { status, headers, body } = await client.answer(undefined)
  expect(`${status} ${body}`, `the answer to ${id}`).toBe(`200 {"name":"${name}"}`)
  return headers.get('connection') === 'close'
}

test('a stop under load answers every request, and stores what it answers', async () => {
  const clientCount = 32
  await using database = await prepareDatabase()
  const file = database.url.slice('file:'.length)
  const created: bigint[] = []
  {
    await using program = await start(database.url)
    let lastId = 0n
    let lastAnswers = 0
    let ended: Promise<unknown> | undefined
    const work = async () => {
      const client = await connectRaw(program.url)
      let isLast = false
      while (!isLast) {
        lastId++
        const id = lastId
        isLast = await createOver(client, id)
        created.push(id)
        if (created.length === 500) {
          ended = program.end('SIGINT')
        }
      }
      lastAnswers++
      if (lastAnswers === 1) {
        // A terminal and a package manager that passes it on send more signals.
        void program.end('SIGINT')
        void program.end('SIGTERM')
      }
      return client.closed()
    }
    const bytesAfterLast = await Promise.all(Array.from({ length: clientCount }, work))
    expect(`${Buffer.concat(bytesAfterLast)}`).toBe('')
    expect(await ended).toBe(0)
    expect(program.log.at(-1)?.msg).toBe('stopped')
    expect(program.warnings()).toEqual([])
  }
  // The WAL was taken into the database: it was closed, not left.
  expect(existsSync(`${file}-wal`)).toBe(false)

  await using storage = await openStorage({ url: database.url })
  for (const id of created) {
    const found = await storage.plants.find(parsePlantId(id))
    expect(found?.plant, `${id}`).toEqual({ id, name: `plant ${id}` })
  }
})

test('a client that reconnects during a stop is never reset', async () => {
  await using database = await prepareDatabase()
  await using program = await start(database.url)
  let answers = 0
  let ended: Promise<unknown> | undefined
  const work = async () => {
    for (;;) {
      let activeAtMs = performance.now()
      const client = await connectRaw(program.url).catch(error => {
        if (error.code !== 'ECONNREFUSED') {
          throw error
        }
      })
      if (client === undefined) {
        return
      }
      let isLast = false
      while (!isLast) {
        const idleMs = performance.now() - activeAtMs
        activeAtMs = performance.now()
        client.send('GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n')
        const answer = await client.answer(undefined).catch(error => {
          // A stop closes connections that are idle for 500 ms. On a busy machine, this
          // client may be as late.
          if (idleMs < 400) {
            throw error
          }
        })
        isLast = answer === undefined || answer.headers.get('connection') === 'close'
        if (++answers === 500) {
          ended = program.end('SIGTERM')
        }
      }
      client[Symbol.dispose]()
    }
  }
  await Promise.all(Array.from({ length: 32 }, work))
  expect(await ended).toBe(0)
})

test('an incomplete request and a silent webhook do not delay a stop', async () => {
  await using database = await prepareDatabase()
  await using program = await start(database.url, { SHUTDOWN_TIMEOUT: '5s' })
  await using webhook = await listen(database.url, () => new Promise(() => {}))
  expect((await create(program, 2)).status).toBe(200)
  await until('the webhook is asked', () => webhook.received.length === 1)
  const halves = [
    'GET /readyz HTT',
    rawPost(token, '{"id": 1, "name": "half"}').slice(0, -1),
  ]
  const clients = await Promise.all(
    halves.map(async half => {
      const client = await connectRaw(program.url)
      client.send(half)
      return client
    }),
  )
  // It ends with 1 after the time, which would be too short for one after the other.
  expect(await program.end('SIGTERM')).toBe(0)
  const answers = await Promise.all(clients.map(client => client.closed()))
  expect(`${Buffer.concat(answers)}`).toBe('')
  expect(program.log.at(-1)?.msg).toBe('stopped')
})
