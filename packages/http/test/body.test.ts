import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { expect, test, vi } from 'vitest'
import { RequestError } from '../src/errors/error-numbers.ts'
import { readWhole } from '../src/request/bodies.ts'
import { Body } from '../src/wire/body.ts'
import type { Budget } from '../src/wire/budget.ts'

const response = {} as ServerResponse
const carrier = { note() {}, resumeOrPause() {} }

function begin(headers: object = {}) {
  const stream = new PassThrough()
  const body = new Body(stream, response, carrier)
  const done = vi.fn()
  readWhole({ headers } as FastifyRequest, body, 5, done)
  return { stream, body, done }
}

test.each([
  { why: 'its pieces are longer', headers: {}, pieces: ['12345', '6', '7'] },
  { why: 'its announced length is', headers: { 'content-length': '6' }, pieces: [] },
])('a body above the limit is refused once, and then ignored: $why', row => {
  const { stream, body, done } = begin(row.headers)

  for (const piece of row.pieces) {
    stream.emit('data', Buffer.from(piece))
  }
  const tooLarge = expect.objectContaining({ code: 'body-too-large' })
  expect(done.mock.calls).toEqual([[tooLarge]])

  stream.emit('data', Buffer.alloc(100_000))
  stream.emit('end')
  expect(done, 'after the refusal').toHaveBeenCalledTimes(1)
  expect(body.length).toBe(0)
  expect(body.hasRoom).toBe(true)
})

test('a body ends with its first error', () => {
  const { stream, body, done } = begin()

  stream.emit('data', Buffer.from('123'))
  stream.emit('error', new Error('aborted'))
  body.fail(new RequestError('too-many-bytes', 'full'))

  const badRequest = expect.objectContaining({ code: 'bad-request' })
  expect(done.mock.calls).toEqual([[badRequest]])
})

test.each([
  {
    why: 'of many lengths',
    lengths: [1, 100, 3, 20_000, 5, 16_383, 16_384, 70_000, 1],
  },
  { why: 'longer than a buffer', lengths: [40_000] },
  { why: 'that do not exist', lengths: [] },
])('pieces $why make one whole, whatever was taken before', ({ lengths }) => {
  const stream = new PassThrough()
  const body = new Body(stream, response, carrier)
  const pieces = lengths.map((length, n) => Buffer.alloc(length, n))
  const whole = Buffer.concat(pieces)

  for (const wanted of [0, 1, whole.length]) {
    for (const piece of pieces) {
      stream.emit('data', piece)
    }
    expect(body.length, `before ${wanted} bytes are taken`).toBe(whole.length)

    const first = body.take(Math.min(wanted, whole.length))
    const rest = body.take(body.length)
    const taken = Buffer.concat([first, rest])
    expect(taken.equals(whole), `${wanted} bytes were taken first`).toBe(true)
  }
  expect(body.length, 'in the end').toBe(0)
})

test('a body has room for 16 KiB and a packet until it is read', () => {
  const stream = new PassThrough()
  const body = new Body(stream, response, carrier)

  stream.emit('data', Buffer.alloc(16 * 1024))
  expect(body.hasRoom, '16 KiB').toBe(true)

  stream.emit('data', Buffer.alloc(1))
  expect(body.hasRoom, 'one byte more').toBe(false)

  body.waitForMore(100_000, () => {})
  expect(body.hasRoom, 'its reader waits for more').toBe(true)

  stream.emit('data', Buffer.alloc(100_000))
  expect(body.hasRoom, 'more has come').toBe(false)
})

function createBudget() {
  const hold = vi.fn<(bytes: number) => void>()
  const setHeld: Budget['setHeld'] = (_response, bytes) => hold(bytes)
  return { hold, budget: { free: () => 0, setHeld } }
}

test('bytes above 16 KiB are counted twice until they are dropped', () => {
  const stream = new PassThrough()
  const body = new Body(stream, response, carrier)
  const { hold, budget } = createBudget()

  // These bytes come before the body is counted.
  stream.emit('data', Buffer.alloc(16 * 1024))
  body.count(budget, false)
  expect(hold, '16 KiB').toHaveBeenLastCalledWith(0)

  stream.emit('data', Buffer.alloc(1))
  expect(hold, 'one byte more').toHaveBeenLastCalledWith(2 * (16 * 1024 + 1))

  body.drop()
  expect(hold, 'dropped').toHaveBeenLastCalledWith(0)
})

test('a whole body is counted until its answer has left', () => {
  const stream = new PassThrough()
  const body = new Body(stream, response, carrier)
  const { hold, budget } = createBudget()

  body.count(budget, false)
  stream.emit('data', Buffer.alloc(20_000))
  stream.emit('end')
  body.take(20_000)

  expect(hold).toHaveBeenLastCalledWith(40_000)
})
