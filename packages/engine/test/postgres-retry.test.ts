import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
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

describe.each([
  { failure: 'a serialization failure', code: '40001' },
  { failure: 'a deadlock', code: '40P01' },
])('after $failure', ({ code }) => {
  beforeEach(() => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0)
    onTestFinished(() => random.mockRestore())
  })

  test('a transaction is tried ten times', async () => {
    const succeeding = new FailingTransaction(9, code)
    const failing = new FailingTransaction(100, code)

    const outcome = await retryRolledBack(patienceMs, succeeding.run)

    expect(outcome).toBe('done')
    await expect(retryRolledBack(patienceMs, failing.run)).rejects.toThrow('rolled back')
    expect(failing.attempts).toBe(10)
  })

  test('each pause may be twice as long as the one before', async () => {
    vi.mocked(Math.random).mockReturnValue(1)
    const transaction = new FailingTransaction(4, code)
    const startedMs = performance.now()

    await retryRolledBack(patienceMs, transaction.run)

    const waitedMs = performance.now() - startedMs
    const pausesMs = 2 + 4 + 8 + 16
    // A timer may be a millisecond early.
    expect(waitedMs).toBeGreaterThan(pausesMs - 4)
  })

  test('the time is counted from the first attempt', async () => {
    // The process has run for long.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1e9)
    onTestFinished(() => clock.mockRestore())
    const transaction = new FailingTransaction(9, code)

    expect(await retryRolledBack(patienceMs, transaction.run)).toBe('done')
  })
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
