import { existsSync } from 'node:fs'
import { fetchLitestream, litestreamProgram } from '@plant-store/harness/litestream'
import { anySeed } from '@plant-store/harness/random'
import { needs } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { runLitestream } from '../src/litestream.ts'

const { CI } = process.env
if (CI) fetchLitestream()
const litestream = needs(
  'litestream (`pnpm prove --only litestream` fetches it)',
  existsSync(litestreamProgram),
)

test('what litestream restores after a kill has all but the creates of the last moments', {
  ...litestream,
  timeout: 120_000,
}, async () => {
  const seed = anySeed()
  const { failures, tried } = await runLitestream({ seed, scale: 1, endAtMs: Number.POSITIVE_INFINITY }, 1)
  expect(failures, `seed ${seed}: ${tried}`).toEqual([])
})
