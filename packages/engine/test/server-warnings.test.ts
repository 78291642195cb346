import { expect, onTestFinished, test, vi } from 'vitest'
import { limitWarnings } from '../src/postgres/server-warnings.ts'

test('warnings of each kind pass once a minute', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const warnings: string[] = []
  const warn = limitWarnings(warning => warnings.push(warning))

  warn('39 transactions are left', 'GetNewTransactionId')
  warn('38 transactions are left', 'GetNewTransactionId')
  warn('the collation has changed', 'check_collation')
  vi.advanceTimersByTime(59_999)
  warn('37 transactions are left', 'GetNewTransactionId')
  vi.advanceTimersByTime(1)
  warn('36 transactions are left', 'GetNewTransactionId')

  expect(warnings).toEqual([
    '39 transactions are left',
    'the collation has changed',
    '36 transactions are left',
  ])
})
