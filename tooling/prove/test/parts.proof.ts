import assert from 'node:assert/strict'
import { anySeed } from '@plant-store/harness/random'
import { beforeAll, expect, test } from 'vitest'
import { parts } from '../src/parts.ts'
import { buildPatched, type PatchedPrograms } from '../src/programs.ts'

const seed = anySeed()
/** The share of everything that is tried: 1 for the whole proof. */
const scale = Number(process.env['SCALE'] ?? 1)
assert.ok(scale > 0, 'SCALE must be a positive number')

let programs: PatchedPrograms
beforeAll(async () => {
  console.log(`seed ${seed}`)
  programs = await buildPatched('short-log')
  return () => programs[Symbol.dispose]()
})

test.for(Object.entries(parts))('%s', async ([, run]) => {
  const { tried, failures, skipped = [] } = await run({ seed, scale, programs })

  console.log(tried)
  for (const reason of skipped) {
    console.log(`NOT TRIED ${reason}`)
  }
  expect(failures.slice(0, 20), `with SEED=${seed}`).toEqual([])
})
