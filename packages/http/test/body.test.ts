import { PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { expect, test, vi } from 'vitest'
import { RequestError } from '../src/errors/failures.ts'
import { readBody, receiveBody } from '../src/request/body.ts'

const carrier = { waitsForTurn: false, note() {}, resumeOrPause() {} }

function begin(headers: object = {}, bodyLimit = 5) {
  const body = new PassThrough()
  const done = vi.fn()
  receiveBody(body, carrier)
  readBody({ headers, server: { initialConfig: { bodyLimit } } } as unknown as FastifyRequest, body, done)
  return { body, done }
}

test.each([
  [['12345'], '12345'],
  [['1', 'é', '45'], '1é45'],
  [[], ''],
])('the body in the pieces %j is read whole', (pieces, whole) => {
  const { body, done } = begin({ 'content-length': '5' })
  for (const piece of pieces) body.emit('data', Buffer.from(piece))
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
  for (const piece of ['12345', '6', '7']) body.emit('data', Buffer.from(piece))
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
  body.emit('data', Buffer.from('123'))
  body.emit('error', error)
  body.emit('error', error)
  expect(done.mock.calls).toEqual([[expect.objectContaining({ code })]])
})

test.each([[[1, 100, 3, 20_000, 5, 16_383, 16_384, 70_000, 1]], [[40_000]], [[]], [[10, 10]]])(
  'pieces of %j bytes make one whole, whatever was taken before',
  lengths => {
    const stream = new PassThrough()
    const body = receiveBody(stream, carrier)
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

test('a body has room for 16 KiB and a packet until it is read, and for anything once it is dropped', () => {
  const stream = new PassThrough()
  const resumeOrPause = vi.fn()
  const body = receiveBody(stream, { ...carrier, resumeOrPause })
  stream.emit('data', Buffer.alloc(16 * 1024))
  expect([body.hasRoom, resumeOrPause.mock.calls.length]).toEqual([true, 0])
  stream.emit('data', Buffer.alloc(1))
  expect([body.hasRoom, resumeOrPause.mock.calls.length]).toEqual([false, 1])
  body.waitForMore(100_000, () => {})
  expect([body.hasRoom, resumeOrPause.mock.calls.length]).toEqual([true, 2])
  stream.emit('data', Buffer.alloc(100_000))
  expect([body.hasRoom, resumeOrPause.mock.calls.length]).toEqual([false, 3])
  body.drop()
  expect([body.hasRoom, resumeOrPause.mock.calls.length]).toEqual([true, 4])
})

test('what arrives over a connection that waits for its turn is told once, at its turn or at the end', () => {
  const stream = new PassThrough()
  const waiting = { ...carrier, waitsForTurn: true }
  const body = receiveBody(stream, waiting)
  const onMore = vi.fn()
  body.waitForMore(100_000, onMore)
  for (let n = 0; n < 2; n++) stream.emit('data', Buffer.alloc(1))
  expect(onMore).not.toHaveBeenCalled()
  body.tell()
  body.tell()
  expect(onMore).toHaveBeenCalledTimes(1)
  body.waitForMore(100_000, onMore)
  stream.emit('end')
  expect(onMore).toHaveBeenCalledTimes(2)
})

test('bodies that are discarded are counted no longer', () => {
  const stream = new PassThrough()
  const body = receiveBody(stream, carrier)
  const hold = vi.fn()
  body.countWith(hold)
  stream.emit('data', Buffer.alloc(20_000))
  body.drop()
  expect(hold).toHaveBeenLastCalledWith(0)
})

test('memory is counted twice, in steps of 16 KiB, also what came before the request was admitted', () => {
  const stream = new PassThrough()
  const body = receiveBody(stream, carrier)
  const hold = vi.fn()
  stream.emit('data', Buffer.alloc(16 * 1024))
  body.countWith(hold)
  expect(hold).not.toHaveBeenCalled()
  stream.emit('data', Buffer.alloc(1))
  expect(hold.mock.calls).toEqual([[4 * 16 * 1024]])
  const late = new PassThrough()
  const lateBody = receiveBody(late, carrier)
  late.emit('data', Buffer.alloc(20_000))
  lateBody.countWith(hold)
  expect(hold).toHaveBeenLastCalledWith(4 * 16 * 1024)
})
