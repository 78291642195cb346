import { getEventListeners } from 'node:events'
import { type ClientOptions, createPlantClient } from '@plant-store/client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const now = Date.UTC(2030, 0, 1)
beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now }),
)
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const busy = (retryAfter?: string) => () =>
  Response.json(
    { error: 50301, message: 'busy' },
    {
      status: 503,
      headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
    },
  )

/** Reads a plant, and returns the milliseconds between its requests. */
async function waits(
  answer: (signal: AbortSignal) => Response | Promise<Response>,
  options: Partial<ClientOptions> = {},
  random = 0.5,
) {
  vi.spyOn(Math, 'random').mockReturnValue(random)
  const atMs: number[] = []
  const fetch = async (_url: unknown, init?: RequestInit) => {
    atMs.push(Date.now())
    return answer(init?.signal as AbortSignal)
  }
  const caller = new AbortController()
  const client = createPlantClient({
    baseUrl: 'http://store',
    token: 't',
    fetch,
    ...options,
  })
  const reading = expect(client.read(1n, { signal: caller.signal })).rejects.toThrow()
  await vi.runAllTimersAsync()
  await reading
  expect(vi.getTimerCount()).toBe(0)
  expect(getEventListeners(caller.signal, 'abort')).toEqual([])
  return atMs.slice(1).map((at, index) => at - (atMs[index] as number))
}

test.each([
  [0, [0, 0, 0]],
  [0.5, [50, 100, 200]],
  [0.99, [99, 198, 396]],
])(
  'where chance is %d, the waits before three more attempts are %j',
  async (random, expected) => {
    expect(await waits(busy(), {}, random)).toEqual(expected)
  },
)

test('no wait is longer than 5 seconds', async () => {
  const longest = [100, 200, 400, 800, 1600, 3200, 5000, 5000]
  expect(await waits(busy(), { attemptsMax: 9 }, 1)).toEqual(longest)
})

test.each([
  ['1', 1000],
  ['30', 30_000],
  ['Tue, 01 Jan 2030 00:00:07 GMT', 7000],
  ['Mon, 31 Dec 2029 23:59:50 GMT', 0],
  ['soon', 0],
  ['-1', 0],
  ['1 s', 0],
])('Retry-After: %s is waited for, and then some', async (field, ms) => {
  expect(await waits(busy(field), { attemptsMax: 2 })).toEqual([ms + 50])
})

test('a Retry-After above the maximum ends the call', async () => {
  expect(await waits(busy('31'))).toEqual([])
})

test('an attempt has 10 seconds', async () => {
  const hang = (signal: AbortSignal) =>
    new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    )
  expect(await waits(hang, { attemptsMax: 2 })).toEqual([10_050])
})

test('a caller who gives up during a wait leaves no timer behind', async () => {
  const caller = new AbortController()
  const fetch = async () => busy('20')()
  const client = createPlantClient({ baseUrl: 'http://store', token: 't', fetch })
  const reading = expect(client.read(1n, { signal: caller.signal })).rejects.toBe('gone')
  await vi.advanceTimersByTimeAsync(1000)
  expect(vi.getTimerCount()).toBe(1)
  caller.abort('gone')
  await reading
  expect(vi.getTimerCount()).toBe(0)
})
