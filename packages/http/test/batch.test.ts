import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AccessError } from '@plant-store/access'
import { DomainError, type Plant, type PlantId, parsePlantId } from '@plant-store/domain'
import { longPlant, plant } from '@plant-store/domain/testing'
import { stopServer } from '@plant-store/http/server'
import {
  assertFailure,
  bareRequest,
  chunk,
  hostAndToken,
  jsonOf,
  toJson,
} from '@plant-store/http/testing'
import { type ExpectStatic, expect, test, vi } from 'vitest'
import { PartRoom, readParts } from '../src/plants/batch.ts'
import {
  pausedInserts,
  type ServiceOptions,
  startService,
  versioned,
} from './memory-service.ts'

/**
 * These tests cover what only a batch meets: long lives, slow or broken senders, and
 * other batches.
 */

async function start(options: ServiceOptions = {}) {
  const service = await startService(options)
  const { client } = service
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
      const asked = client.asked('POST /plants/batch')
      const send = (text: string) => wire.send(chunk(text))

      wire.send(
        bareRequest(asked, [
          ...hostAndToken(client),
          'content-type: application/x-ndjson',
          'transfer-encoding: chunked',
        ]),
      )
      if (lines.length > 0) {
        send(lines.join(''))
      }
      return {
        send,
        sendRaw: wire.send,
        end: () => wire.send(chunk('')),
        answer: () => wire.answer(asked),
        closed: wire.closed,
        [Symbol.dispose]: () => wire[Symbol.dispose](),
      }
    },
  }
}

function line(id: number, name = 'n'): string {
  return `{"id":${id},"name":"${name}"}\n`
}

function lines(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => line(n))
}

function plantId(id: number): PlantId {
  return parsePlantId(BigInt(id))
}

/** This number of short lines needs more than one part. */
const manyLines = 2_000
const mayHaveCreated = /plants of earlier lines may have been created$/

// Several wait for a second: a refused connection stays open for its client.
test.concurrent('a defect of the server ends a batch, and is no fault of a line', async ({
  expect,
}) => {
  const noBytes = {} as Buffer

  const reading = readParts([[noBytes]]).next()

  await expect(reading).rejects.toThrow(TypeError)
})

test.concurrent('a revoked token ends a batch with 401, and its plants stay', async ({
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
  const sentLines = lines(2 * manyLines)
  using batch = await service.begin(...sentLines.slice(0, manyLines))
  await expect.poll(() => service.plants.find(plantId(0))).toBeDefined()

  isRevoked = true
  batch.send(sentLines.slice(manyLines).join(''))
  const answer = await batch.answer()

  assertFailure(answer, 40102, mayHaveCreated)
  await expect
    .poll(() => service.answered.at(-1))
    .toMatchObject({ status: 401, error: 40102, created: expect.any(Number) })
  const created = service.answered.at(-1)?.created ?? 0
  expect(created).toBeLessThan(2 * manyLines)
  expect(await service.plants.find(plantId(created - 1))).toBeDefined()
  expect(await service.plants.find(plantId(created))).toBeUndefined()
})

test.concurrent('a broken batch is refused and logged once its inserts have ended', async ({
  expect,
}) => {
  using inserts = pausedInserts()
  await using service = await start({ plants: inserts.plants })
  // These lines are one part, and the beginning of another.
  using batch = await service.begin(...lines(200))
  await inserts.begun

  const broken = once(service.app.server, 'clientError')
  batch.sendRaw('no size\r\n')
  const onAnswer = vi.fn()
  const answering = batch.answer().finally(onAnswer)
  await broken
  for (let n = 0; n < 10; n++) {
    await service.client.ask('GET', '/healthz')
  }
  expect(onAnswer, 'while it inserts').not.toHaveBeenCalled()
  inserts.resume()
  const answer = await answering

  assertFailure(answer, 40000, mayHaveCreated)
  const isPositive = (count: number) => count > 0
  await expect
    .poll(() => service.answered.find(({ method }) => method === 'POST'))
    .toMatchObject({ status: 400, created: expect.toSatisfy(isPositive) })
})

test.concurrent('a failing store ends a batch, and the connection of an unread one', async ({
  expect,
}) => {
  const insert = async () => {
    throw new DomainError('store-busy', 'too many changes are pending')
  }
  await using service = await start({ plants: { insert } })

  using unread = await service.begin(...lines(3 * manyLines))
  const answer = await unread.answer()
  const bytesAfterwards = await unread.closed()
  const whole = await service.client.ask('POST', '/plants/batch', {
    headers: { 'content-type': 'application/x-ndjson' },
    body: line(1),
  })

  assertFailure(answer, 50301, mayHaveCreated)
  expect(answer.headers.get('connection')).toBe('close')
  expect(answer.headers.get('retry-after')).toBe('1')
  expect(bytesAfterwards).toHaveLength(0)
  assertFailure(whole, 50301, mayHaveCreated)
  expect(whole.headers.get('connection')).not.toBe('close')
})

test('a batch that never ends leaves room for others', async () => {
  const room = new PartRoom(100)
  let isEndless = true
  const endless = (async () => {
    while (isEndless) {
      await room.enter(1, 100)
      room.leave(100)
    }
  })()

  await room.enter(2, 100)

  isEndless = false
  room.leave(100)
  await endless
})

test('the batch that came first is admitted until it has no part', async () => {
  const room = new PartRoom(100)
  await room.enter(1, 100)
  const admitted: string[] = []
  const enter = async (place: number, part: string) => {
    await room.enter(place, 50)
    admitted.push(part)
  }

  const later = [enter(3, 'third'), enter(2, 'second')]
  const first = enter(1, 'first').then(() => enter(1, 'first again'))
  room.leave(100)
  await first
  room.leave(100)
  await Promise.all(later)

  expect(admitted).toEqual(['first', 'first again', 'second', 'third'])
})

/** Returns a line with this many bytes, before its end. */
function lineOfLength(id: bigint, bytes: number): string {
  return toJson(longPlant(id, bytes - toJson(longPlant(id, 0)).length))
}

test.each([
  { lineBytes: 320, count: 192, counts: [64, 64, 64] },
  { lineBytes: 319, count: 192, counts: [65, 65, 62] },
  { lineBytes: 32 * 1024 - 192, count: 2, counts: [1, 1] },
])('lines of $lineBytes bytes and 192 more each fill parts of 32 KiB', async row => {
  const bytes = Buffer.from(lineOfLength(1n, row.lineBytes))

  const counts: number[] = []
  for await (const { plants } of readParts([Array(row.count).fill(bytes)])) {
    counts.push(plants.length)
  }

  expect(counts.filter(count => count > 0)).toEqual(row.counts)
})

test('one part is admitted in each turn of the event loop', async () => {
  const room = new PartRoom(100)
  let admitted = 0
  const entering = [1, 2, 3].map(async place => {
    await room.enter(place, 1)
    admitted++
  })

  for (const expected of [1, 2, 3]) {
    await nextTurn()
    expect(admitted, `after turn ${expected}`).toBe(expected)
  }
  await Promise.all(entering)
})

test('parts run at once up to the room, and one that is larger runs alone', async () => {
  const room = new PartRoom(100)
  let isAdmitted = false
  await Promise.all([room.enter(1, 40), room.enter(2, 60)])
  const large = room.enter(3, 101).then(() => {
    isAdmitted = true
  })

  room.leave(40)
  await nextTurn()
  await nextTurn()
  expect(isAdmitted, 'while another runs').toBe(false)

  room.leave(60)
  await large
})

test('all batches have parts of up to 1.5 MiB under way', async () => {
  let begun = 0
  using inserts = pausedInserts(() => begun++)
  await using service = await start({ plants: inserts.plants })
  const many = Array.from(
    { length: manyLines },
    (_, n) => `${lineOfLength(BigInt(n), 320)}\n`,
  )
  // 64 of these lines are a part of 32 KiB, so 48 parts are under way.
  const linesUnderWay = 48 * 64

  using _one = await service.begin(...many)
  using _other = await service.begin(...many)
  await expect.poll(() => begun).toBeGreaterThanOrEqual(linesUnderWay)
  for (let n = 0; n < 10; n++) {
    await service.client.ask('GET', '/healthz')
  }

  expect(begun).toBe(linesUnderWay)
})

test('a batch holds no more memory than its incomplete line, which counts', async () => {
  await using service = await start({ limits: { heldBytesMax: 400_000 } })
  const spaces = ' '.repeat(30_000)
  // The lines alone are more than the limit. It leaves room for two incomplete lines.
  using first = await service.begin(...lines(5_000), spaces, spaces)
  await service.isRead(170_000, expect)
  // This plant is in the last part but one, or near it.
  await expect.poll(() => service.plants.find(plantId(4_800))).toBeDefined()
  using second = await service.begin(spaces)
  await service.isRead(30_000, expect)

  using third = await service.begin(spaces)
  const refused = await third.answer()
  first.send(`\n${line(5_000)}`)
  first.end()
  second.end()
  const answer = await first.answer()
  const otherAnswer = await second.answer()

  assertFailure(refused, 50305)
  expect(jsonOf(answer)).toMatchObject({ created: 5_001n, refused: 1n })
  expect(jsonOf(otherAnswer)).toMatchObject({ refused: 1n })
})

test('the faults of a batch are those of its first lines', async () => {
  const { promise: firstResumed, resolve: resumeFirst } = Promise.withResolvers<void>()
  let parts = 0
  const insertAll = async (plants: readonly Plant[]) => {
    parts++
    if (parts === 1) {
      await firstResumed
    }
    // A part is admitted once the one before it has run.
    if (parts === 3) {
      resumeFirst()
    }
    return plants.map(() => 'id-taken' as const)
  }
  const find = async (id: PlantId) => versioned(plant(id, 'another'))
  await using service = await start({ plants: { insertAll, find } })

  const answer = await service.client.ask('POST', '/plants/batch', {
    headers: { 'content-type': 'application/x-ndjson' },
    body: lines(manyLines).join(''),
  })

  const { faults } = jsonOf(answer) as { faults: readonly { line: bigint }[] }
  const firstLines = Array.from({ length: 100 }, (_, index) => BigInt(index + 1))
  expect(faults.map(fault => fault.line)).toEqual(firstLines)
})

test('a batch that goes on is excused from the timeout of a request', async () => {
  await using service = await start()
  using batch = await service.begin(...lines(manyLines))
  await expect.poll(() => service.plants.find(plantId(0))).toBeDefined()
  const socket = service.sockets.at(-1)

  // Node reports this once the request has taken longer than one may.
  const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
  service.app.server.emit('clientError', late, socket)
  batch.send(line(manyLines))
  batch.end()
  const answer = await batch.answer()

  expect(jsonOf(answer)).toMatchObject({ created: BigInt(manyLines + 1) })
})

test('a stopping server answers an unfinished batch after its time', async () => {
  await using service = await start({ limits: { batchRequestDrainMs: 600 } })
  using idle = await service.begin(...lines(manyLines), '{"id":')
  using quick = await service.begin(line(manyLines))
  await expect.poll(() => service.plants.find(plantId(0))).toBeDefined()

  const stopped = stopServer(service.app, 20_000)
  quick.send(line(manyLines + 1))
  quick.end()
  const quickAnswer = await quick.answer()
  const idleAnswer = await idle.answer()

  expect(jsonOf(quickAnswer)).toMatchObject({ created: 2n })
  expect(quickAnswer.headers.get('connection')).toBe('close')
  assertFailure(idleAnswer, 50303, mayHaveCreated)
  expect(await stopped).toBe(0)
})
