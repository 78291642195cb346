import { existsSync } from 'node:fs'
import { parsePlantListQuery } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'
import { afterAll, expect, test } from 'vitest'
import { alone, ask, connectRaw, createOver, start, token } from './ask.ts'
import { prepareDatabase } from './database.ts'

await using starting = new AsyncDisposableStack()
const database = starting.use(await prepareDatabase())
const [program, balanced] = await Promise.all([
  start(
    { HTTP_THREADS: '2', SHUTDOWN_DELAY: '200ms', SHUTDOWN_TIMEOUT: '5s' },
    { databaseUrl: database.url },
  ),
  // Its delay is never over here.
  start({ HTTP_THREADS: '2', SHUTDOWN_DELAY: '1h' }),
])
starting.use(program)
starting.use(balanced)
const resources = starting.move()
afterAll(() => resources.disposeAsync())

test('a stop under load answers every request, and stores what it answers', async () => {
  // A batch whose client never ends.
  using batch = await connectRaw(program.url)
  batch.send(
    `POST /plants/batch HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${token}\r\n`,
    'Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n',
    '14\r\n{"id":-1,"name":"n"}\r\n',
  )
  let lastId = 0
  let ended: Promise<unknown> | undefined
  const work = async () => {
    using client = await connectRaw(program.url)
    let isLast = false
    while (!isLast) {
      lastId++
      const id = lastId
      const { status, headers } = await createOver(client, id)
      expect(status, `the answer to ${id}`).toBe(200)
      isLast = headers.get('connection') === 'close'
      if (id === 50) {
        ended = program.end('SIGINT')
      }
    }
    // A terminal and a package manager that passes it on send more signals.
    program.process.kill('SIGTERM')
    const bytesAfterLast = await client.closed()
    expect(`${bytesAfterLast}`, 'after the last answer').toBe('')
    // No thread listens any more, so none resets a client that comes back.
    await expect(connectRaw(program.url)).rejects.toThrow('ECONNREFUSED')
  }

  await Promise.all(Array.from({ length: 6 }, work))
  const answerToBatch = await batch.answer(undefined)
  expect(await ended).toBe(0)

  expect(`${answerToBatch.body}`).toMatch(/^\{"error":50303,/)
  const stopping = await program.logged('stopping')
  const stopped = await program.logged('stopped')
  expect(stopped.time - stopping.time).toBeGreaterThanOrEqual(200)
  expect(program.log.at(-1)).toBe(stopped)
  expect(program.warnings()).toEqual([])
  // The WAL was taken into the database: it was closed, not left.
  expect(existsSync(`${database.url.slice('file:'.length)}-wal`)).toBe(false)
  await using storage = await openStorage({ url: database.url })
  const query = { ...parsePlantListQuery({ after: 0n }), limit: lastId }
  expect(await storage.plants.page(query)).toHaveLength(lastId)
})

test('clients whose balancer asks /readyz are all answered in a stop', async () => {
  const statuses: number[] = []
  let isTakenOut = false
  const work = async () => {
    while (!isTakenOut) {
      const { status } = await ask(balanced, 'GET /healthz', { headers: alone })
      if (statuses.push(status) === 20) {
        balanced.process.kill('SIGTERM')
      }
    }
  }
  const balance = async () => {
    while (!isTakenOut) {
      const { status } = await ask(balanced, 'GET /readyz', { headers: alone })
      isTakenOut = status === 503
    }
  }

  await Promise.all([balance(), ...Array.from({ length: 8 }, work)])
  const late = await ask(balanced, 'GET /plants', { headers: alone })

  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(late.status).toBe(200)
})
