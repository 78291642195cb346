import { expect, onTestFinished, test, vi } from 'vitest'
import { retryRolledBack } from '../src/postgres/retry.ts'

const patienceMs = 60_000

/** A transaction that fails with a code as often as it is told to. */
class FailingTransaction {
  attempts = 0
  readonly #failures: number
  readonly #code: string | undefined

  constructor(failures: number, code?: string) {
    this.#failures = failures
    this.#code = code
  }

  readonly run = async (): Promise<string> => {
    this.attempts++
    if (this.attempts <= this.#failures) {
      throw Object.assign(new Error('rolled back'), { code: this.#code })
    }
    return 'done'
  }
}

/** Fixes how long each pause is, of what it may be at most. */
function fixPauses(part: number): void {
  const random = vi.spyOn(Math, 'random').mockReturnValue(part)
  onTestFinished(() => random.mockRestore())
}

test.each([
  { failure: 'a serialization failure', code: '40001' },
  { failure: 'a deadlock', code: '40P01' },
])('a transaction is tried ten times after $failure', async ({ code }) => {
  fixPauses(0)
  // The process has run for long, and the time is counted from the first attempt.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(1e9)
  onTestFinished(() => clock.mockRestore())
  const succeeding = new FailingTransaction(9, code)
  const failing = new FailingTransaction(100, code)

  const outcome = await retryRolledBack(patienceMs, succeeding.run)

  expect(outcome).toBe('done')
  await expect(retryRolledBack(patienceMs, failing.run)).rejects.toThrow('rolled back')
  expect(failing.attempts).toBe(10)
})

test('each pause may be twice as long as the one before', async () => {
  fixPauses(1)
  const transaction = new FailingTransaction(4, '40001')
  const startedMs = performance.now()

  await retryRolledBack(patienceMs, transaction.run)

  const pausesMs = 2 + 4 + 8 + 16
  // A timer may be a millisecond early.
  expect(performance.now() - startedMs).toBeGreaterThan(pausesMs - 4)
})

test.each([
  { why: 'it is too late', code: '40001', timeoutMs: -1 },
  { why: 'the failure is another one', code: '23505', timeoutMs: patienceMs },
  { why: 'the failure has no code', code: undefined, timeoutMs: patienceMs },
])('a transaction is not tried again if $why', async ({ code, timeoutMs }) => {
  const transaction = new FailingTransaction(1, code)

  await expect(retryRolledBack(timeoutMs, transaction.run)).rejects.toThrow('rolled back')

  expect(transaction.attempts).toBe(1)
})
