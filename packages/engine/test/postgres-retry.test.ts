import { expect, test, vi } from 'vitest'
import { retryRolledBack } from '../src/postgres/retry.ts'

const patienceMs = 60_000

/** Returns a transaction that fails with a code as often as it is told to. */
function failingTransaction(failures: number, code: string) {
  const transaction = vi.fn(async () => 'done')
  for (let failure = 0; failure < failures; failure++) {
    transaction.mockRejectedValueOnce(Object.assign(new Error('rolled back'), { code }))
  }
  return transaction
}

/** Fixes how long each pause is, of what it may be at most. */
function fixPauses(part: number) {
  vi.spyOn(Math, 'random').mockReturnValue(part)
}

test.each(Object.entries({ 'a serialization failure': '40001', 'a deadlock': '40P01' }))(
  'a transaction is tried ten times after %s',
  async (_, code) => {
    fixPauses(0)
    // The process has run for long, and the time is counted from the first attempt.
    vi.spyOn(performance, 'now').mockReturnValue(1e9)
    const succeeding = failingTransaction(9, code)
    const failing = failingTransaction(100, code)

    const outcome = await retryRolledBack(patienceMs, succeeding)

    expect(outcome).toBe('done')
    await expect(retryRolledBack(patienceMs, failing)).rejects.toThrow('rolled back')
    expect(failing).toHaveBeenCalledTimes(10)
  },
)

test('each pause may be twice as long as the one before', async () => {
  fixPauses(1)
  const transaction = failingTransaction(4, '40001')
  const startedMs = performance.now()

  await retryRolledBack(patienceMs, transaction)

  const pausesMs = 2 + 4 + 8 + 16
  // A timer may be a millisecond early.
  expect(performance.now() - startedMs).toBeGreaterThan(pausesMs - 4)
})

test.each([
  { why: 'it is too late', code: '40001', timeoutMs: -1 },
  { why: 'the failure is another one', code: '23505', timeoutMs: patienceMs },
])('a transaction is not tried again if $why', async ({ code, timeoutMs }) => {
  const transaction = failingTransaction(1, code)

  await expect(retryRolledBack(timeoutMs, transaction)).rejects.toThrow('rolled back')

  expect(transaction).toHaveBeenCalledOnce()
})
