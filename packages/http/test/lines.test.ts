import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { serverDefaults } from '@plant-store/http/testing'
import { expect, test, vi } from 'vitest'
import { readLines } from '../src/request/lines.ts'
import { Body } from '../src/wire/body.ts'

/** Reads a body that is written piece by piece. */
function begin(ending = new AbortController().signal) {
  const body = new PassThrough()
  const limits = { ...serverDefaults.limits, bodyBytesMax: 5, requestTimeoutMs: 1_000 }
  const carrier = { notePiece() {}, resumeOrPause() {} }
  const response = {} as ServerResponse
  const lines = readLines(new Body(body, response, carrier), limits, ending)
  const next = async () => {
    const { value } = await lines.next()
    return value && [...value].map(String)
  }
  return { body, next }
}

async function readAll(pieces: readonly string[]): Promise<string[]> {
  const { body, next } = begin()
  const allLines: string[] = []
  const reading = next()
  for (const piece of pieces) {
    body.write(piece)
  }
  body.end()
  let lines = await reading
  while (lines !== undefined) {
    allLines.push(...lines)
    lines = await next()
  }
  return allLines
}

test.each([
  [['12345\n'], ['12345']],
  [['12345\r', '\n'], ['12345\r']],
  [['12', '345'], ['12345']],
  [['12345\r'], ['12345\r']],
  [
    ['1\n2', '3\n', '\n', '4\n5'],
    ['1', '23', '', '4', '5'],
  ],
])('the pieces %j are divided where lines end', async (pieces, lines) => {
  expect(await readAll(pieces)).toEqual(lines)
})

test.each([[['123456\n']], [['123456']], [['12345\r\r\n']], [['12345', '\r6']]])(
  'the pieces %j have a line of six bytes, which is too long',
  async pieces => {
    await expect(readAll(pieces)).rejects.toMatchObject({ code: 'body-too-large' })
  },
)

test('the end of a line that is too long need not arrive', async () => {
  const { body, next } = begin()
  const read = next()
  body.write('12345\r\r')
  await expect(read).rejects.toMatchObject({ code: 'body-too-large' })
})

test('each line has its time, in which the caller reads', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { body, next } = begin()
  const first = next()
  vi.advanceTimersByTime(999)
  body.write('1\n')
  expect(await first).toEqual(['1'])

  vi.advanceTimersByTime(10_000)
  const second = next()
  vi.advanceTimersByTime(999)
  body.write('2\n')
  expect(await second).toEqual(['2'])

  const third = next()
  body.write('3')
  vi.advanceTimersByTime(1_000)
  await expect(third).rejects.toMatchObject({ code: 'request-timeout' })
  expect(vi.getTimerCount()).toBe(0)
})

test('a batch that begins once batches are ended is ended too', async () => {
  const { next } = begin(AbortSignal.abort())
  await expect(next()).rejects.toMatchObject({ code: 'draining' })
})

test('a body that was read is not ended later', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const ending = new AbortController()
  const { body, next } = begin(ending.signal)
  const read = next()
  expect(getEventListeners(ending.signal, 'abort')).toHaveLength(1)
  body.end('1\n')
  expect(await read).toEqual(['1'])
  expect(await next()).toBeUndefined()
  expect(getEventListeners(ending.signal, 'abort')).toEqual([])
  expect(vi.getTimerCount()).toBe(0)
})
