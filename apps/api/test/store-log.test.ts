import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createStoreLog } from '../src/telemetry/store-log.ts'

function open() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const lines: string[] = []
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line)
    lines.push(reason ?? msg)
  }
  const logger = pino({}, { write })
  const log = createStoreLog(logger, 'plants.db')
  return {
    log,
    lines,
    fail: (reason: string, thread = 1) => log.note(thread, reason),
    recover: (thread = 1) => log.note(thread, undefined),
  }
}

test('a failure whose reason changes at once, in any thread, is one line with the last reason', () => {
  const { log, lines, fail, recover } = open()
  fail('the connection ended')
  expect(log.reason()).toBe('the connection ended')
  fail('the server is shutting down', 2)
  vi.advanceTimersByTime(1_000)
  fail('nobody listens')
  fail('nobody listens', 2)
  vi.advanceTimersByTime(60_000)
  expect(lines).toEqual(['nobody listens'])
  recover(2)
  recover()
  expect(lines).toEqual(['nobody listens', 'the store has recovered'])
  expect(log.reason()).toBeUndefined()
  vi.advanceTimersByTime(60_000)
  expect(lines).toHaveLength(2)
})

test('a reason that changes later is another line', () => {
  const { lines, fail } = open()
  fail('the disk is full')
  vi.advanceTimersByTime(60_000)
  fail('the file was removed')
  vi.advanceTimersByTime(60_000)
  expect(lines).toEqual(['the disk is full', 'the file was removed'])
})

test('a reason on the way to the recovery is no line', () => {
  const { lines, fail, recover } = open()
  fail('nobody listens')
  vi.advanceTimersByTime(60_000)
  fail('the server is starting')
  vi.advanceTimersByTime(1_000)
  recover()
  vi.advanceTimersByTime(60_000)
  expect(lines).toEqual(['nobody listens', 'the store has recovered'])
  fail('the server is starting')
  vi.advanceTimersByTime(60_000)
  expect(lines.at(-1)).toBe('the server is starting')
})

test('a failure that ends at once, or with the process, is logged too', () => {
  const { log, lines, fail, recover } = open()
  fail('locked')
  recover()
  expect(lines).toEqual(['locked', 'the store has recovered'])
  fail('the disk is full')
  log[Symbol.dispose]()
  expect(lines).toEqual(['locked', 'the store has recovered', 'the disk is full'])
})
