import { getEventListeners } from 'node:events'
import { type ClientOptions, createPlantClient } from '@plant-store/client'
import { beforeEach, expect, test, vi } from 'vitest'
import { silence } from './scripted-store.ts'

const now = Date.UTC(2030, 0, 1)
beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'], now }),
)

type Answer = (signal: AbortSignal | null | undefined) => Response | Promise<Response>

function busy(headers: Record<string, string> = {}) {
  const body = { error: 50301, message: 'busy' }
  return () => Response.json(body, { status: 503, headers })
}

/** Reads a plant, and returns the milliseconds between its requests. */
async function waits(answer: Answer, options: Partial<ClientOptions> = {}, random = 0.5) {
  vi.spyOn(Math, 'random').mockReturnValue(random)
  const waitsMs: number[] = []
  let lastMs: number | undefined
  const fetch = async (_url: unknown, init?: RequestInit) => {
    const nowMs = Date.now()
    if (lastMs !== undefined) {
      waitsMs.push(nowMs - lastMs)
    }
    lastMs = nowMs
    return answer(init?.signal)
  }
  const { signal } = new AbortController()
  const baseUrl = 'http://store'
  const client = createPlantClient({ baseUrl, token: 't', fetch, ...options })

  const reading = expect(client.read(1n, { signal })).rejects.toThrow()
  await vi.runAllTimersAsync()
  await reading

  expect(vi.getTimerCount()).toBe(0)
  expect(getEventListeners(signal, 'abort')).toEqual([])
  return waitsMs
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

test.each(
  Object.entries({
    '1': 1000,
    '30': 30_000,
    'Tue, 01 Jan 2030 00:00:07 GMT': 7000,
    'Mon, 31 Dec 2029 23:59:50 GMT': 0,
    soon: 0,
    '-1': 0,
    '1 s': 0,
  }),
)('a Retry-After of %s is waited for, and a little more', async (field, ms) => {
  const answer = busy({ 'retry-after': field })

  expect(await waits(answer, { attemptsMax: 2 })).toEqual([ms + 50])
})

test('a Retry-After above the maximum ends the call', async () => {
  expect(await waits(busy({ 'retry-after': '31' }))).toEqual([])
})

test.each<[string, Answer]>([
  ['no answer', silence],
  [
    'an unfinished answer',
    signal => Object.assign(Response.json(1), { text: () => silence(signal) }),
  ],
])('an attempt with %s is given up after 10 seconds, and repeated', async (_, answer) => {
  expect(await waits(answer, { attemptsMax: 2 })).toEqual([10_050])
})

test('a caller who gives up during a wait leaves no timer behind', async () => {
  const caller = new AbortController()
  const { signal } = caller
  const answer = busy({ 'retry-after': '20' })
  const fetch = vi.fn(async () => answer())
  const client = createPlantClient({ baseUrl: 'http://store', token: 't', fetch })

  const reading = expect(client.read(1n, { signal })).rejects.toBe('gone')
  await vi.advanceTimersByTimeAsync(1000)
  expect(vi.getTimerCount()).toBe(1)

  caller.abort('gone')
  await reading
  expect(vi.getTimerCount()).toBe(0)

  await expect(client.read(1n, { signal })).rejects.toBe('gone')
  expect(fetch).toHaveBeenCalledOnce()
})
