import { once } from 'node:events'
import { AccessError } from '@plant-store/access'
import { assertFailure, chunk, held } from '@plant-store/contract'
import { DomainError, int64Min, type Plant, parsePlant } from '@plant-store/domain'
import { stopServer } from '@plant-store/http/server'
import { type ExpectStatic, expect, test } from 'vitest'
import { readParts } from '../src/plants/batch.ts'
import { heldInserts, type ServiceOptions, startService } from './memory-service.ts'

/** What a batch meets that no single request does: long lives, slow or broken senders, and others beside it. */

async function start(options: ServiceOptions = {}) {
  const service = await startService(options)
  const { client, tokens } = service
  return {
    ...service,
    /**
     * Resolves once the server has read more than this of the batch that was begun last.
     *
     * @param expect of the test, because several run at once
     */
    isRead: (bytes: number, { poll }: ExpectStatic) =>
      poll(() => service.sockets.at(-1)?.bytesRead).toBeGreaterThan(bytes),
    /** A batch whose body comes in chunks. */
    async begin(...lines: readonly string[]) {
      const wire = await client.open()
      const fields = ['host: h', `authorization: Bearer ${tokens.full}`]
      const head = [
        ...fields,
        'content-type: application/x-ndjson',
        'transfer-encoding: chunked',
      ]
      wire.send(`POST /plants/batch HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`)
      const send = (text: string) => wire.send(chunk(text))
      if (lines.length > 0) {
        send(lines.join(''))
      }
      return {
        send,
        sendRaw: wire.send,
        end: () => wire.send(chunk('')),
        answer: () => wire.answer(client.asked('POST /plants/batch')),
        closed: wire.closed,
        [Symbol.dispose]: () => wire[Symbol.dispose](),
      }
    },
  }
}

const line = (id: number, name = 'n') => `{"id":${id},"name":"${name}"}\n`
/** More than one part. */
const manyLines = 2_000
const lines = (count: number) => Array.from({ length: count }, (_, n) => line(n))
const mayHaveCreated = /plants of earlier lines may have been created$/

// Several wait for a second: a refused connection stays open for its client.
test.concurrent('a client that leaves in the middle of a line leaves nothing behind, and is no defect', async ({
  expect,
}) => {
  await using service = await start({ limits: { heldBytesMax: 400_000 } })
  for (let n = 0; n < 3; n++) {
    const batch = await service.begin(...lines(10), 'x'.repeat(100_000))
    await service.isRead(100_000, expect)
    batch[Symbol.dispose]()
  }
  await expect.poll(() => service.answered).toHaveLength(3)
  expect(service.logged).toEqual([])
  // What they held is free again.
  using last = await service.begin(line(1), `${' '.repeat(180_000)}\n`)
  last.end()
  expect(held(await last.answer())).toMatchObject({ refused: 1n })
})

test.concurrent('lines that wait for their end are held, and too many of them are refused', async ({
  expect,
}) => {
  await using service = await start({ limits: { heldBytesMax: 400_000 } })
  using first = await service.begin(`{"id":1,"name":"n"`, ' '.repeat(120_000))
  await service.isRead(120_000, expect)
  using second = await service.begin(' '.repeat(120_000))
  assertFailure(await second.answer(), 50305)
  first.send('}\n')
  first.end()
  expect(held(await first.answer())).toMatchObject({ created: 1n })
})

test.concurrent('a defect while a line is judged ends the batch, and is no fault of the line', async ({
  expect,
}) => {
  const noBytes = {} as Buffer
  await expect(readParts([[noBytes]]).next()).rejects.toThrow(TypeError)
})

test.concurrent('a batch is logged with its counts', async ({ expect }) => {
  await using service = await start()
  using batch = await service.begin(...lines(3), line(1), line(1, 'other'))
  batch.end()
  await batch.answer()
  const counts = { status: 200, created: 3, existing: 1, refused: 1 }
  await expect.poll(() => service.answered.at(-1)).toMatchObject(counts)
})

test.concurrent('a token that is revoked meanwhile ends it with 401, and what it had created stays', async ({
  expect,
}) => {
  let isRevoked = false
  await using service = await start({
    gate: () => {
      if (isRevoked) {
        throw new AccessError('invalid-token', 'the access token was revoked')
      }
      return { name: 'flora' }
    },
  })
  using batch = await service.begin(...lines(manyLines))
  await expect.poll(() => service.plants.find(plantId(0))).toBeDefined()
  isRevoked = true
  batch.send(
    lines(2 * manyLines)
      .slice(manyLines)
      .join(''),
  )
  const answer = await batch.answer()
  assertFailure(answer, 40102, mayHaveCreated)
  expect(answer.headers.get('connection')).toBe('close')
  const logged = () => service.answered.at(-1)
  await expect
    .poll(logged)
    .toMatchObject({ status: 401, error: 40102, created: expect.any(Number) })
  const created = logged()?.created as number
  expect(created).toBeGreaterThan(0)
  expect(created).toBeLessThan(2 * manyLines)
  expect(await service.plants.find(plantId(created - 1))).toBeDefined()
  expect(await service.plants.find(plantId(created))).toBeUndefined()
})

test.concurrent('a body that breaks is told once the plants under way are created, and the log counts them', async ({
  expect,
}) => {
  using inserts = heldInserts()
  await using service = await start({ plants: inserts.plants })
  // One part, and the beginning of another.
  using batch = await service.begin(...lines(200))
  await inserts.begun
  const broken = once(service.app.server, 'clientError')
  batch.sendRaw('no size\r\n')
  await broken
  for (let n = 0; n < 10; n++) {
    await service.client.ask('GET', '/healthz')
  }
  inserts.letGo()
  assertFailure(await batch.answer(), 40000, mayHaveCreated)
  const logged = () => service.answered.find(({ method }) => method === 'POST')
  await expect
    .poll(logged)
    .toMatchObject({ status: 400, created: expect.toSatisfy(count => count > 0) })
})

test.concurrent('a store that fails ends it with its failure, and the connection too unless the batch has arrived', async ({
  expect,
}) => {
  const insert = () =>
    Promise.reject(new DomainError('store-busy', 'too many changes are pending'))
  await using service = await start({ plants: { insert } })
  using batch = await service.begin(...lines(3 * manyLines))
  const answer = await batch.answer()
  assertFailure(answer, 50301, mayHaveCreated)
  expect([answer.headers.get('connection'), answer.headers.get('retry-after')]).toEqual([
    'close',
    '1',
  ])
  expect((await batch.closed()).length).toBe(0)
  const headers = { 'content-type': 'application/x-ndjson' }
  const whole = await service.client.ask('POST', '/plants/batch', {
    body: line(1),
    headers,
  })
  assertFailure(whole, 50301, mayHaveCreated)
  expect(whole.headers.get('connection')).not.toBe('close')
})

test('however many batches there are, a bounded part of them is under way, and no more is read meanwhile', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const waiting: bigint[] = []
  const insert = async ({ id }: Plant) => {
    if (id === int64Min) {
      return 'inserted' as const
    }
    waiting.push(id)
    await promise
    return 'inserted' as const
  }
  await using service = await start({ plants: { insert } })
  const long = Array.from({ length: 6_000 }, (_, n) => line(n, 'x'.repeat(1_000)))
  const batches = await Promise.all([service.begin(...long), service.begin(...long)])
  await expect.poll(() => waiting.length).toBeGreaterThan(1_200)
  expect((await service.client.post(`{"id":${int64Min},"name":"single"}`)).status).toBe(
    200,
  )
  // 1.5 MiB.
  expect(waiting.length).toBeLessThan(1_400)
  for (const { bytesRead } of service.sockets) {
    expect(bytesRead).toBeLessThan(3_000_000)
  }

  resolve()
  for (const batch of batches) {
    batch.end()
    expect(held(await batch.answer())).toMatchObject({ created: 6_000n })
    batch[Symbol.dispose]()
  }
})

test('plants are created together until their lines, and 192 bytes for each, reach 32 KiB', async () => {
  const counts: number[] = []
  const insertAll = async (all: readonly Plant[]) => {
    counts.push(all.length)
    return all.map(() => 'inserted' as const)
  }
  await using service = await start({ plants: { insertAll } })
  const partsOf = async (lineBytes: number, count: number) => {
    counts.length = 0
    const name = 'x'.repeat(lineBytes - line(1, '').length + 1)
    using batch = await service.begin(line(1, name).repeat(count))
    batch.end()
    expect(held(await batch.answer())).toMatchObject({ created: BigInt(count) })
    return counts.filter(each => each > 0)
  }
  expect(await partsOf(320, 192)).toEqual([64, 64, 64])
  expect(await partsOf(319, 192)).toEqual([65, 65, 62])
  expect(await partsOf(32 * 1024 - 192, 2)).toEqual([1, 1])
})

test('as many parts are under way as fit in 1.5 MiB, and a longer line is alone', async () => {
  const gate = Promise.withResolvers<void>()
  let underWay = 0
  const insert = async () => {
    underWay++
    await gate.promise
    return 'inserted' as const
  }
  await using service = await start({
    limits: { bodyBytesMax: 4 * 2 ** 20 },
    plants: { insert },
  })
  const half = 768 * 1024 - 192
  const halves = [1, 2].map(id => line(id, 'x'.repeat(half - line(id, '').length + 1)))
  using exact = await service.begin(...halves)
  await expect.poll(() => underWay).toBe(2)
  using long = await service.begin(line(3, 'x'.repeat(2 * 2 ** 20)))
  await service.isRead(2 * 2 ** 20, expect)
  expect(underWay).toBe(2)
  gate.resolve()
  for (const batch of [exact, long]) {
    batch.end()
  }
  expect(held(await exact.answer())).toMatchObject({ created: 2n })
  expect(held(await long.answer())).toMatchObject({ created: 1n })
})

test('a batch holds only what it has not created yet', async () => {
  await using service = await start({ limits: { heldBytesMax: 100_000 } })
  const count = 5_000
  using first = await service.begin(...lines(count))
  // All but the last part.
  await expect.poll(() => service.plants.find(plantId(count - 200))).toBeDefined()
  using second = await service.begin(' '.repeat(90_000))
  await service.isRead(90_000, expect)
  second.send(`\n${line(count)}`)
  for (const batch of [first, second]) {
    batch.end()
  }
  expect(held(await first.answer())).toMatchObject({ created: BigInt(count) })
  expect(held(await second.answer())).toMatchObject({ created: 1n, refused: 1n })
})

test('a server that stops answers batches that are still arriving, once their time is over', async () => {
  await using service = await start({ limits: { batchRequestDrainMs: 600 } })
  using idle = await service.begin(...lines(manyLines), '{"id":')
  using quick = await service.begin(line(manyLines))
  await expect.poll(() => service.plants.find(plantId(0))).toBeDefined()
  const stopped = stopServer(service.app, 20_000)
  quick.send(line(manyLines + 1))
  quick.end()
  const answer = await quick.answer()
  expect(held(answer)).toMatchObject({ created: 2n })
  expect(answer.headers.get('connection')).toBe('close')
  assertFailure(await idle.answer(), 50303, mayHaveCreated)
  expect(await stopped).toBe(0)
})

const plantId = (id: number) => parsePlant({ id: BigInt(id), name: '' }).id
