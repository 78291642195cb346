import { existsSync } from 'node:fs'
import { parsePlantId } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { alone, ask, connectRaw, createOver, start, token } from './ask.ts'
import { prepareDatabase } from './database.ts'

test('a stop under load answers every request, and stores what it answers', async () => {
  await using database = await prepareDatabase()
  await using program = await start(
    { HTTP_THREADS: '2', SHUTDOWN_DELAY: '200ms', SHUTDOWN_TIMEOUT: '5s' },
    { databaseUrl: database.url },
  )
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
      if (id === 200) {
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

  await Promise.all(Array.from({ length: 16 }, work))
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
  for (let id = 1n; id <= lastId; id++) {
    expect(await storage.plants.find(parsePlantId(id)), `${id}`).toBeDefined()
  }
})

test('clients whose balancer asks /readyz are all answered in a stop', async () => {
  // Never over here.
  await using program = await start({ HTTP_THREADS: '2', SHUTDOWN_DELAY: '1h' })
  const statuses: number[] = []
  let isTakenOut = false
  const work = async () => {
    while (!isTakenOut) {
      const { status } = await ask(program, 'GET /healthz', { headers: alone })
      if (statuses.push(status) === 100) {
        program.process.kill('SIGTERM')
      }
    }
  }
  const balance = async () => {
    while (!isTakenOut) {
      const { status } = await ask(program, 'GET /readyz', { headers: alone })
      isTakenOut = status === 503
    }
  }

  await Promise.all([balance(), ...Array.from({ length: 30 }, work)])
  const late = await ask(program, 'GET /plants', { headers: alone })

  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(late.status).toBe(200)
})
