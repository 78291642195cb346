import { PassThrough } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { expect, test, vi } from 'vitest'
import { RequestError } from '../src/answer/failures.ts'
import { readBody } from '../src/request/body.ts'

const bodyLimit = 5
/** What a stream of Node listens to itself. */
const own = ['data', 'end', 'error'].map(event => new PassThrough().listenerCount(event))

function begin(headers: object = {}) {
  const body = new PassThrough()
  const done = vi.fn()
  readBody({ headers, routeOptions: { bodyLimit } } as unknown as FastifyRequest, body, done)
  const listeners = () => ['data', 'end', 'error'].map(event => body.listenerCount(event))
  return { body, done, listeners }
}

test.each([
  [['12345'], '12345'],
  [['1', Buffer.from('é'), '45'], '1é45'],
  [[], ''],
])('the body in the pieces %j is read whole', (pieces, whole) => {
  const { body, done, listeners } = begin({ 'content-length': '5' })
  for (const piece of pieces) body.emit('data', piece)
  body.emit('end')
  expect(done.mock.calls).toEqual([[null, Buffer.from(whole)]])
  expect(listeners()).toEqual(own)
})

test('a body that exceeds the limit is refused once, and then ignored', () => {
  const { body, done, listeners } = begin()
  for (const piece of ['12345', '6', '7']) body.emit('data', piece)
  body.emit('end')
  expect(done.mock.calls).toEqual([[expect.objectContaining({ code: 'body-too-large' })]])
  expect(listeners()).toEqual(own)
})

test('a body whose length exceeds the limit is refused before it arrives', () => {
  const { done, listeners } = begin({ 'content-length': '6' })
  expect(done.mock.calls).toEqual([[expect.objectContaining({ code: 'body-too-large' })]])
  expect(listeners()).toEqual(own)
})

test.each([
  ['a reset connection', new Error('aborted'), 'bad-request'],
  ['a refusal', new RequestError('too-many-bytes', 'full'), 'too-many-bytes'],
])('%s ends a body with its reason', (_, error, code) => {
  const { body, done, listeners } = begin()
  body.emit('data', '123')
  body.emit('error', error)
  expect(done.mock.calls).toEqual([[expect.objectContaining({ code })]])
  expect(listeners()).toEqual(own)
})
