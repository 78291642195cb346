import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { createPageReader } from '../src/request/page-reader.ts'
import { createBudget } from '../src/wire/budget.ts'

const response = {} as ServerResponse

function createReader() {
  const ending = new AbortController()
  const budget = createBudget(1)
  return {
    ending,
    readPage: createPageReader(budget, 1, ending.signal),
  }
}

test('after 5 ms of reading pages, others have twenty turns', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { readPage } = createReader()
  let reads = 0
  const readSlowly = async () => {
    reads++
    vi.advanceTimersByTime(6)
  }

  const reading = Array.from({ length: 3 }, () => readPage(response, readSlowly))
  await nextTurn()
  expect(reads, 'in the first turn').toBe(1)

  for (let turn = 0; turn < 19; turn++) {
    await nextTurn()
  }
  expect(reads, 'in the turns of others').toBe(1)

  await Promise.all(reading)
  expect(reads, 'in the end').toBe(3)
})

test('short pages are read in one turn', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { readPage } = createReader()
  let reads = 0

  const reading = Array.from({ length: 3 }, () => readPage(response, async () => reads++))
  await nextTurn()

  expect(reads).toBe(3)
  await Promise.all(reading)
})

test('a page that waits when the server stops is refused', async () => {
  const { ending, readPage } = createReader()

  const page = readPage(response, async () => 'a page')
  ending.abort()

  await expect(page).rejects.toMatchObject({ code: 'draining' })
})
