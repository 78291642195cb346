import { fileURLToPath } from 'node:url'
import { anySeed } from '@plant-store/harness/random'
import { expect, test } from 'vitest'
import { fuzz } from '../src/fuzz.ts'
import { startProgram } from '../src/program.ts'

const seed = anySeed()
console.log(`seed ${seed}`)

async function fuzzProgram(runs: number, preload?: string) {
  await using program = await startProgram({ preload })
  return { ...(await fuzz(program, { seed, runs })), defects: program.defects() }
}

test('requests made from the description are answered as it says', async () => {
  const { requests, failures, defects } = await fuzzProgram(50)
  expect(failures).toEqual([])
  expect(defects).toEqual([])
  expect(requests).toBeGreaterThan(500)
}, 60_000)

test('a status that is not declared is caught', async () => {
  const { failures } = await fuzzProgram(
    50,
    fileURLToPath(new URL('../breaks/undeclared-status.ts', import.meta.url)),
  )
  expect(failures.join()).toMatch(/the status 202 is not declared/)
}, 60_000)
