import { PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { expect, test, vi } from 'vitest'
import { RequestError } from '../src/errors/failures.ts'
import { readBody, receiveBody } from '../src/request/body.ts'

function begin(headers: object = {}, bodyLimit = 5) {
  const body = new PassThrough()
  const done = vi.fn()
  receiveBody(body, body)
  readBody({ headers, routeOptions: { bodyLimit } } as unknown as FastifyRequest, body, done)
  return { body, done }
}

test.each([
  [['12345'], '12345'],
  [['1', Buffer.from('é'), '45'], '1é45'],
  [[], ''],
])('the body in the pieces %j is read whole', (pieces, whole) => {
  const { body, done } = begin({ 'content-length': '5' })
  for (const piece of pieces) body.emit('data', piece)
  body.emit('end')
  expect(done.mock.calls).toEqual([[null, Buffer.from(whole)]])
})

test('a long body is told once, also if its end comes in the same turn', async () => {
  const { body, done } = begin({}, 100_000)
  for (let n = 0; n < 2; n++) body.emit('data', Buffer.alloc(20_000))
  body.emit('end')
  await nextTurn()
  expect(done).toHaveBeenCalledTimes(1)
  expect(done.mock.calls[0]?.[1]).toHaveLength(40_000)
})

test('a body that exceeds the limit is refused once, and then ignored', () => {
  const { body, done } = begin()
  for (const piece of ['12345', '6', '7']) body.emit('data', piece)
  body.emit('end')
  expect(done.mock.calls).toEqual([[expect.objectContaining({ code: 'body-too-large' })]])
})

test('a body whose length exceeds the limit is refused before it arrives', () => {
  const { done } = begin({ 'content-length': '6' })
  expect(done.mock.calls).toEqual([[expect.objectContaining({ code: 'body-too-large' })]])
})

test.each([
  ['a reset connection', new Error('aborted'), 'bad-request'],
  ['a refusal', new RequestError('too-many-bytes', 'full'), 'too-many-bytes'],
])('%s ends a body with its reason', (_, error, code) => {
  const { body, done } = begin()
  body.emit('data', '123')
  body.emit('error', error)
  body.emit('error', error)
  expect(done.mock.calls).toEqual([[expect.objectContaining({ code })]])
})

test.each([[[1, 100, 3, 20_000, 5, 16_383, 16_384, 70_000, 1]], [[40_000]], [[]], [[10, 10]]])(
  'pieces of %j bytes make one whole, whatever was taken before',
  lengths => {
    const stream = new PassThrough()
    const body = receiveBody(stream, stream)
    const given = lengths.map((length, n) => Buffer.alloc(length, n))
    const whole = Buffer.concat(given)
    for (const taken of [0, 1, whole.length]) {
      for (const piece of given) stream.emit('data', piece)
      expect(body.length).toBe(whole.length)
      const first = body.take(Math.min(taken, whole.length))
      expect(Buffer.concat([first, body.take(body.length)]).equals(whole)).toBe(true)
    }
    expect(body.length).toBe(0)
  },
)

test('a body that is not admitted stops at 16 KiB and a packet, and goes on when it is read', async () => {
  const stream = new PassThrough()
  const source = { pause: vi.fn(), resume: vi.fn() }
  const body = receiveBody(stream, source)
  stream.emit('data', Buffer.alloc(16 * 1024))
  await nextTurn()
  expect(source.pause).not.toHaveBeenCalled()
  stream.emit('data', Buffer.alloc(1))
  await nextTurn()
  expect([source.pause.mock.calls.length, source.resume.mock.calls.length]).toEqual([1, 0])
  body.waitForMore(100_000, () => {})
  expect(source.resume).toHaveBeenCalledTimes(1)
})

test('a long body is read once in a turn, also one that is discarded', async () => {
  const stream = new PassThrough()
  const source = { pause: vi.fn(), resume: vi.fn() }
  const body = receiveBody(stream, source)
  body.drop()
  for (let n = 0; n < 3; n++) stream.emit('data', Buffer.alloc(20_000))
  await nextTurn()
  expect([body.length, source.pause.mock.calls.length, source.resume.mock.calls.length]).toEqual([0, 3, 1])
})

test('bodies that are discarded are counted no longer', () => {
  const stream = new PassThrough()
  const body = receiveBody(stream, stream)
  const hold = vi.fn()
  body.countWith(hold)
  stream.emit('data', Buffer.alloc(20_000))
  body.drop()
  expect(hold).toHaveBeenLastCalledWith(0)
})

test('of many long bodies a few are read in a turn', async () => {
  await nextTurn()
  const sources = Array.from({ length: 9 }, () => ({ pause: vi.fn(), resume: vi.fn() }))
  for (const source of sources) {
    const stream = new PassThrough()
    receiveBody(stream, source).drop()
    stream.emit('data', Buffer.alloc(20_000))
  }
  const resumed = () => sources.filter(({ resume }) => resume.mock.calls.length > 0).length
  for (const count of [2, 4, 6, 8, 9]) {
    await nextTurn()
    expect(resumed()).toBe(count)
  }
})

test('memory is counted twice, in steps of 16 KiB, also what came before the request was admitted', () => {
  const stream = new PassThrough()
  const body = receiveBody(stream, stream)
  const hold = vi.fn()
  stream.emit('data', Buffer.alloc(16 * 1024))
  body.countWith(hold)
  expect(hold).not.toHaveBeenCalled()
  stream.emit('data', Buffer.alloc(1))
  expect(hold.mock.calls).toEqual([[4 * 16 * 1024]])
  const late = new PassThrough()
  const lateBody = receiveBody(late, late)
  late.emit('data', Buffer.alloc(20_000))
  lateBody.countWith(hold)
  expect(hold).toHaveBeenLastCalledWith(4 * 16 * 1024)
})
