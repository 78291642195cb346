import { existsSync } from 'node:fs'
import { parsePlantId } from '@plant-store/domain'
import type { Wire } from '@plant-store/http/testing'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { alone, ask, connectRaw, rawPost, start as startServer, token } from './ask.ts'
import { prepareDatabase } from './database.ts'

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
    await using program = await start(database.url, { SHUTDOWN_DELAY: '200ms' })
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
      const bytesAfterLast = await client.closed()
      expect(`${bytesAfterLast}`, 'after the last answer').toBe('')
      // No thread listens any more, so none resets a client that comes back.
      await expect(connectRaw(program.url)).rejects.toThrow('ECONNREFUSED')
    }
    await Promise.all(Array.from({ length: clientCount }, work))
    expect(await ended).toBe(0)
    const stopping = await program.logged('stopping')
    const stopped = await program.logged('stopped')
    expect(stopped.time - stopping.time).toBeGreaterThanOrEqual(200)
    expect(program.log.at(-1)).toBe(stopped)
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

test('clients whose balancer asks /readyz are all answered in a stop', async () => {
  await using database = await prepareDatabase()
  // Never over here.
  await using program = await start(database.url, { SHUTDOWN_DELAY: '1h' })
  const statuses = new Map<number, number>()
  let isTakenOut = false
  const work = async () => {
    while (!isTakenOut) {
      const { status } = await ask(program, 'GET /healthz', { headers: alone })
      const count = (statuses.get(status) ?? 0) + 1
      statuses.set(status, count)
      if (count === 500) {
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
  await Promise.all([balance(), ...Array.from({ length: 200 }, work)])
  const late = await ask(program, 'GET /plants', { headers: alone })

  expect([...statuses.keys()]).toEqual([200])
  expect(late.status).toBe(200)
})
