import { fileURLToPath } from 'node:url'
import { anySeed } from '@plant-store/harness/random'
import { expect, test } from 'vitest'
import { runAnnouncements } from '../src/announcements.ts'

const seed = anySeed()
console.log(`seed ${seed}`)
const kill = (kills: number, broken?: string) =>
  runAnnouncements(
    {
      seed,
      scale: 1,
      endAtMs: performance.now() + 40_000,
      preload: broken && fileURLToPath(new URL(`../breaks/${broken}.ts`, import.meta.url)),
    },
    kills,
  )

test('every plant that is created while the program is killed reaches every webhook', async () => {
  const { failures, lost, times } = await kill(2)
  expect(failures).toEqual([])
  expect([lost, times]).toEqual([0, 2])
}, 60_000)

test('a program that does not wait for the answer to a delivery is caught', async () => {
  expect((await kill(3, 'answer-not-awaited')).lost).toBeGreaterThan(0)
}, 60_000)
