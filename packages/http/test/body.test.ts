import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { expect, test, vi } from 'vitest'
import { RequestError } from '../src/errors/error-numbers.ts'
import { readWhole } from '../src/request/bodies.ts'
import { Body } from '../src/wire/body.ts'
import type { Budget } from '../src/wire/budget.ts'

function createBody() {
  const stream = new PassThrough()
  const carrier = { notePiece() {}, resumeOrPause() {} }
  const body = new Body(stream, {} as ServerResponse, carrier)
  const send = (bytes: number) => stream.emit('data', Buffer.alloc(bytes))
  return { stream, body, send }
}

function begin(headers: object = {}) {
  const created = createBody()
  const done = vi.fn()
  readWhole({ headers } as FastifyRequest, created.body, 5, done)
  return { ...created, done }
}

test.each([
  { why: 'its pieces are longer', headers: {}, pieces: [5, 1, 1] },
  { why: 'its announced length is', headers: { 'content-length': '6' }, pieces: [] },
])('a body above the limit is refused once, and then ignored: $why', row => {
  const { stream, body, send, done } = begin(row.headers)

  for (const bytes of row.pieces) {
    send(bytes)
  }
  const tooLarge = expect.objectContaining({ code: 'body-too-large' })
  expect(done.mock.calls).toEqual([[tooLarge]])

  send(100_000)
  stream.emit('end')
  expect(done, 'after the refusal').toHaveBeenCalledTimes(1)
  expect(body.length).toBe(0)
  expect(body.hasRoom).toBe(true)
})

const noRoom = new RequestError('too-many-bytes', 'full')

test('a body ends with its first error', () => {
  const { stream, body, send, done } = begin()

  send(3)
  stream.emit('error', new Error('aborted'))
  body.endEarly(noRoom)

  const badRequest = expect.objectContaining({ code: 'bad-request' })
  expect(done.mock.calls).toEqual([[badRequest]])
})

test('pieces make one whole, whatever was taken before', () => {
  const { stream, body } = createBody()
  const lengths = [1, 100, 3, 20_000, 5, 16_383, 16_384, 70_000, 1]
  const pieces = lengths.map((length, n) => Buffer.alloc(length, n))
  const whole = Buffer.concat(pieces)

  for (const wanted of [0, 1, whole.length]) {
    for (const piece of pieces) {
      stream.emit('data', piece)
    }
    const taken = Buffer.concat([body.take(wanted), body.take(body.length)])

    expect(taken.equals(whole), `${wanted} bytes were taken first`).toBe(true)
  }
  expect(body.length, 'in the end').toBe(0)
})

test('a body has room for 16 KiB and a packet until it is read', () => {
  const { body, send } = createBody()

  send(16 * 1024)
  expect(body.hasRoom, '16 KiB').toBe(true)

  send(1)
  expect(body.hasRoom, 'one byte more').toBe(false)

  body.waitForMore(100_000, () => {})
  expect(body.hasRoom, 'its reader waits for more').toBe(true)

  send(100_000)
  expect(body.hasRoom, 'more has come').toBe(false)
})

function createBudget() {
  const hold = vi.fn()
  const budget: Budget = { free: () => 0, setHeld: (_response, bytes) => hold(bytes) }
  return { hold, budget }
}

test('bytes above 16 KiB are counted twice until they are dropped', () => {
  const { body, send } = createBody()
  const { hold, budget } = createBudget()

  // These bytes come before the body is counted.
  send(16 * 1024)
  body.startCounting(budget, false)
  expect(hold, '16 KiB').toHaveBeenLastCalledWith(0)

  send(1)
  expect(hold, 'one byte more').toHaveBeenLastCalledWith(2 * (16 * 1024 + 1))

  body.drop()
  expect(hold, 'dropped').toHaveBeenLastCalledWith(0)
})

test('a whole body is counted until its answer has left', () => {
  const { stream, body, send } = createBody()
  const { hold, budget } = createBudget()

  body.startCounting(budget, false)
  send(20_000)
  stream.emit('end')
  body.take(20_000)

  expect(hold).toHaveBeenLastCalledWith(40_000)
})

test('a body that was whole before it is counted needs room, too', () => {
  const { stream, body, send } = createBody()
  const { hold, budget } = createBudget()
  hold.mockThrow(noRoom)

  send(20_000)
  stream.emit('end')
  body.startCounting(budget, false)

  expect(body.error).toBe(noRoom)
})
