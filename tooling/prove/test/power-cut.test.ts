import { fileURLToPath } from 'node:url'
import { mayStartTraced, noTracer } from '@plant-store/harness'
import { anySeed } from '@plant-store/harness/random'
import { expect, test } from 'vitest'
import { cutCopies } from '../src/power-cut.ts'

// Every cut starts a program, and the machine may be busy.
const timeout = 240_000
const seed = anySeed()
console.log(`seed ${seed}`)
/** Copies that replace a file write and fsync all that others do. `pnpm prove` tries all. */
const olds = ['an old file'] as const
const circumstances = { seed, scale: 1, endAtMs: Number.POSITIVE_INFINITY }

test('a power cut leaves the old file or the new one, and the new one once that was said', {
  timeout,
}, async context => {
  if (!mayStartTraced()) return context.skip(noTracer)
  const { failures, times } = await cutCopies(circumstances, olds)
  expect(failures).toEqual([])
  expect(times).toBeGreaterThan(10)
})

test('a file whose folder is not fsynced is noticed', { timeout }, async context => {
  if (!mayStartTraced()) return context.skip(noTracer)
  const preload = fileURLToPath(new URL('../breaks/folder-not-synced.ts', import.meta.url))
  const { lost } = await cutCopies({ ...circumstances, preload }, olds, ['export'])
  expect(lost).toBeGreaterThan(0)
})
