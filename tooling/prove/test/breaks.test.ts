import { fileURLToPath } from 'node:url'
import { anySeed } from '@plant-store/harness/random'
import { expect, test } from 'vitest'
import { runKills } from '../src/kill.ts'

const seed = anySeed()
console.log(`seed ${seed}`)
const kill = (kills: number, broken?: string) =>
  runKills(
    {
      seed,
      scale: 1,
      endAtMs: performance.now() + 40_000,
      preload: broken && fileURLToPath(new URL(`../breaks/${broken}.ts`, import.meta.url)),
    },
    kills,
  )

test('the program loses nothing that it answered when it is killed', async () => {
  const { failures, lost, times } = await kill(2)
  expect(failures).toEqual([])
  expect([lost, times]).toEqual([0, 2])
}, 60_000)

test('a program that answers before its commit is caught', async () => {
  expect((await kill(3, 'answer-before-commit')).lost).toBeGreaterThan(0)
}, 60_000)

test('a program where the last writer wins is caught', async () => {
  expect((await kill(2, 'last-writer-wins')).lost).toBeGreaterThan(0)
}, 60_000)
