import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { parsePlantId } from '@plant-store/domain'
import { type Server, until } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { connectRaw, create, rawPost, start as startServer, token } from './ask.ts'
import { prepareDatabase } from './database.ts'
import { listen } from './listener.ts'

const start = (database: { url: string }, more: Record<string, string> = {}) =>
  startServer({ HTTP_THREADS: '2', ...more }, { databaseUrl: database.url })

/** Resolves once nobody listens any more: the program has begun to stop. */
async function refusesConnections({ url }: Server): Promise<void> {
  const { hostname, port } = new URL(url)
  for (;;) {
    const socket = connect(Number(port), hostname)
    const refused = await once(socket, 'connect').then(
      () => false,
      error => error.code === 'ECONNREFUSED',
    )
    socket.destroy()
    if (refused) return
  }
}

test('under load from 32 clients every request is answered whole, and what was answered is stored', async () => {
  const clientCount = 32
  await using database = await prepareDatabase()
  const file = database.url.slice('file:'.length)
  const created: bigint[] = []
  let lastAnswers = 0
  {
    await using program = await start(database)
    let nextId = 1n
    let ended: Promise<unknown> | undefined
    const work = async () => {
      const client = await connectRaw(program.url)
      for (;;) {
        const id = nextId++
        client.send(rawPost(token, `{"id": ${id}, "name": "plant ${id}"}`))
        const answer = await client.answer(undefined)
        expect(answer.status).toBe(200)
        expect(JSON.parse(`${answer.body}`)).toEqual({ name: `plant ${id}` })
        created.push(id)
        if (created.length === 500) ended = program.end('SIGTERM')
        if (answer.headers.get('connection') === 'close') {
          lastAnswers++
          expect(await client.closed()).toHaveLength(0)
          return
        }
      }
    }
    await Promise.all(Array.from({ length: clientCount }, work))
    expect(await ended).toBe(0)
    expect(program.log.at(-1)?.msg).toBe('stopped')
    expect(program.warnings()).toEqual([])
  }
  expect(lastAnswers).toBe(clientCount)
  // The WAL was taken into the database: it was closed, not left.
  expect(existsSync(`${file}-wal`)).toBe(false)

  await using storage = await openStorage({ url: database.url })
  for (const id of created) {
    const found = await storage.plants.find(parsePlantId(id))
    expect(found?.plant).toEqual({ id, name: `plant ${id}` })
  }
})

test('a client that reconnects when its connection is closed is answered or refused, and never reset', async () => {
  await using database = await prepareDatabase()
  await using program = await start(database)
  let answers = 0
  let ended: Promise<unknown> | undefined
  const work = async () => {
    for (;;) {
      const client = await connectRaw(program.url).catch(error => {
        if (error.code !== 'ECONNREFUSED') throw error
      })
      if (client === undefined) return
      let isLast = false
      while (!isLast) {
        client.send('GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n')
        isLast = (await client.answer(undefined)).headers.get('connection') === 'close'
        if (++answers === 500) ended = program.end('SIGTERM')
      }
      client[Symbol.dispose]()
    }
  }
  await Promise.all(Array.from({ length: 32 }, work))
  expect(await ended).toBe(0)
})

test('what is under way is finished, readiness says so, and everyone else is turned away', async () => {
  await using database = await prepareDatabase()
  await using program = await start(database)
  const silent = await connectRaw(program.url)
  const idle = await connectRaw(program.url)
  idle.send('GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n')
  expect(await idle.answer(undefined)).toMatchObject({ status: 200, body: Buffer.from('{"status":"ready"}') })
  const posting = await connectRaw(program.url)
  const [head, body] = rawPost(token, '{"id": 1, "name": "slow"}').split('\r\n\r\n')
  posting.send(`${head}\r\nExpect: 100-continue\r\n\r\n`)
  expect(await posting.interim()).toBe(100)
  const asking = await connectRaw(program.url)
  asking.send('GET /readyz HTTP/1.1\r\nHost: h\r\n')
  // A round trip later the server has seen all of the above.
  expect((await fetch(`${program.url}/healthz`)).status).toBe(200)

  const ended = program.end('SIGINT')
  await refusesConnections(program)
  expect(await silent.closed()).toHaveLength(0)
  expect(await idle.closed()).toHaveLength(0)
  // Those of a terminal and of a package manager that passes it on.
  void program.end('SIGTERM')
  void program.end('SIGINT')

  asking.send('\r\n')
  const readiness = await asking.answer(undefined)
  expect(readiness.status).toBe(503)
  expect(JSON.parse(`${readiness.body}`)).toMatchObject({ error: 50303 })
  // Of requests sent one behind the other, the answer that says that it is the last is.
  posting.send(`${body}${rawPost(token, '{"id": 2, "name": "second"}')}`)
  const created = await posting.answer(undefined)
  expect(created).toMatchObject({ status: 200, body: Buffer.from('{"name":"slow"}') })
  for (const [client, answer] of [
    [asking, readiness],
    [posting, created],
  ] as const) {
    expect(answer.headers.get('connection')).toBe('close')
    expect(await client.closed()).toHaveLength(0)
  }
  expect(await ended).toBe(0)
  expect(program.output()).toMatch(/"msg":"stopped"\}\n$/)
  expect(program.errors()).toBe('')
  await using storage = await openStorage({ url: database.url })
  expect((await storage.plants.find(parsePlantId(1n)))?.plant).toEqual({ id: 1n, name: 'slow' })
  expect(await storage.plants.find(parsePlantId(2n))).toBeUndefined()
})

test('neither a request that never arrives whole nor a webhook that never answers keeps it for longer than allowed', async () => {
  await using database = await prepareDatabase()
  await using program = await start(database, { SHUTDOWN_TIMEOUT: '3s' })
  await using webhook = await listen(database.url, () => new Promise(() => {}))
  expect((await create(program, 2)).status).toBe(200)
  await until('the webhook is asked', () => webhook.received.length === 1)
  const halves = ['GET /readyz HTT', rawPost(token, '{"id": 1, "name": "half"}').slice(0, -1)]
  const clients = await Promise.all(
    halves.map(async half => {
      const client = await connectRaw(program.url)
      client.send(half)
      return client
    }),
  )
  // It ends with 1 after the time, which would be too short for one after the other.
  expect(await program.end('SIGTERM')).toBe(0)
  for (const client of clients) expect(await client.closed()).toHaveLength(0)
  expect(program.log.at(-1)?.msg).toBe('stopped')
})
