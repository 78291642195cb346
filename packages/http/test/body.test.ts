import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { expect, test, vi } from 'vitest'
import { RequestError } from '../src/errors/failures.ts'
import { Body, createBodyReader } from '../src/wire/body.ts'

const response = {} as ServerResponse
const carrier = { note() {}, resumeOrPause() {} }

function begin(headers: object = {}) {
  const stream = new PassThrough()
  const done = vi.fn()
  const body = new Body(stream, response, carrier)
  createBodyReader(5)({ headers } as FastifyRequest, stream, done)
  return { stream, body, done }
}

test.each([
  [['12345'], '12345'],
  [['1', 'é', '45'], '1é45'],
  [[], ''],
])('the body in the pieces %j is read whole', (pieces, whole) => {
  const { stream, done } = begin({ 'content-length': '5' })
  for (const piece of pieces) {
    stream.emit('data', Buffer.from(piece))
  }
  stream.emit('end')
  expect(done.mock.calls).toEqual([[null, Buffer.from(whole)]])
})

test.each([
  [{}, ['12345', '6', '7']],
  [{ 'content-length': '6' }, []],
])(
  'a body that exceeds the limit is refused once, and then ignored: %j',
  (headers, pieces) => {
    const { stream, body, done } = begin(headers)
    for (const piece of pieces) {
      stream.emit('data', Buffer.from(piece))
    }
    expect(done.mock.calls).toEqual([
      [expect.objectContaining({ code: 'body-too-large' })],
    ])
    stream.emit('data', Buffer.alloc(100_000))
    stream.emit('end')
    expect(done).toHaveBeenCalledTimes(1)
    expect([body.length, body.hasRoom]).toEqual([0, true])
  },
)

test('a body ends with its first error', () => {
  const { stream, body, done } = begin()
  stream.emit('data', Buffer.from('123'))
  stream.emit('error', new Error('aborted'))
  body.fail(new RequestError('too-many-bytes', 'full'))
  expect(done.mock.calls).toEqual([[expect.objectContaining({ code: 'bad-request' })]])
})

test.each([[[1, 100, 3, 20_000, 5, 16_383, 16_384, 70_000, 1]], [[40_000]], [[]]])(
  'pieces of %j bytes make one whole, whatever was taken before',
  lengths => {
    const stream = new PassThrough()
    const body = new Body(stream, response, carrier)
    const given = lengths.map((length, n) => Buffer.alloc(length, n))
    const whole = Buffer.concat(given)
    for (const taken of [0, 1, whole.length]) {
      for (const piece of given) {
        stream.emit('data', piece)
      }
      expect(body.length).toBe(whole.length)
      const first = body.take(Math.min(taken, whole.length))
      expect(Buffer.concat([first, body.take(body.length)]).equals(whole)).toBe(true)
    }
    expect(body.length).toBe(0)
  },
)

test('a body has room for 16 KiB and a packet until it is read', () => {
  const stream = new PassThrough()
  const body = new Body(stream, response, carrier)
  stream.emit('data', Buffer.alloc(16 * 1024))
  expect(body.hasRoom).toBe(true)
  stream.emit('data', Buffer.alloc(1))
  expect(body.hasRoom).toBe(false)
  body.waitForMore(100_000, () => {})
  expect(body.hasRoom).toBe(true)
  stream.emit('data', Buffer.alloc(100_000))
  expect(body.hasRoom).toBe(false)
})

test('bytes above 16 KiB are counted twice until they are dropped', () => {
  const stream = new PassThrough()
  const body = new Body(stream, response, carrier)
  const hold = vi.fn()
  stream.emit('data', Buffer.alloc(16 * 1024))
  body.admit({ free: () => 0, setHeld: (_response, bytes) => hold(bytes) }, false)
  expect(hold).toHaveBeenLastCalledWith(0)
  stream.emit('data', Buffer.alloc(1))
  expect(hold).toHaveBeenLastCalledWith(2 * (16 * 1024 + 1))
  body.drop()
  expect(hold).toHaveBeenLastCalledWith(0)
})

test('a whole body is counted until its answer has left', () => {
  const stream = new PassThrough()
  const body = new Body(stream, response, carrier)
  const hold = vi.fn()
  body.admit({ free: () => 0, setHeld: (_response, bytes) => hold(bytes) }, false)
  stream.emit('data', Buffer.alloc(20_000))
  stream.emit('end')
  body.take(20_000)
  expect(hold).toHaveBeenLastCalledWith(40_000)
})
