import { pino } from 'pino'
import { expect, test } from 'vitest'
import { StoreLog } from '../src/telemetry/store-log.ts'

function open() {
  const lines: string[] = []
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line)
    lines.push(reason ?? msg)
  }
  const log = new StoreLog(pino({}, { write }), 'plants.db')
  return { log, lines }
}

test('each reason of an outage is one line, and so is its end', () => {
  const { log, lines } = open()
  log.note(1, 'the connection ended')
  log.note(2, 'the connection ended')
  expect(log.reason).toBe('the connection ended')
  log.note(1, 'nobody listens')
  log.note(2, 'nobody listens')
  log.note(1, 'the connection ended')
  expect(log.reason).toBe('the connection ended')
  log.note(2, undefined)
  expect(lines).toEqual(['the connection ended', 'nobody listens'])
  log.note(1, undefined)
  expect(log.reason).toBeUndefined()
  log.note(1, 'nobody listens')
  expect(lines.slice(2)).toEqual(['the store has recovered', 'nobody listens'])
})
