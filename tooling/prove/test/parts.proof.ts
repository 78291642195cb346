import assert from 'node:assert/strict'
import { anySeed } from '@plant-store/harness/random'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { breaks } from '../breaks/breaks.ts'
import type { Part } from '../src/part.ts'
import { parts } from '../src/parts.ts'
import { buildPatched, type Programs } from '../src/programs.ts'

const seed = anySeed()
/** The share of everything that is tried: 1 for the whole proof. */
const scale = Number(process.env['SCALE'] ?? 1)
assert.ok(scale > 0, 'SCALE must be a positive number')

const tries: string[] = []
let programs: Programs & Disposable
beforeAll(async () => {
  console.log(`seed ${seed}`)
  programs = await buildPatched('short-log')
  return () => programs[Symbol.dispose]()
})
afterAll(() => console.log(`\nTried, with the seed ${seed}:\n${tries.join('\n')}`))

test.for(Object.entries(parts))('%s', async ([name, run]) => {
  const { tried, failures, skipped = [] } = await run({ seed, scale, programs })

  tries.push(
    `${name}: ${tried}`,
    ...skipped.map(reason => `${name}: NOT TRIED ${reason}`),
  )
  expect(failures.slice(0, 20), `with SEED=${seed}`).toEqual([])
  // Whoever tries it at home may lack a program. At night nothing is left out.
  expect(process.env['CI'] ? skipped : [], 'what was not tried').toEqual([])
})

test.for(Object.entries(breaks))(
  'the break %s is noticed',
  async ([name, { part, noticed }]) => {
    using broken = await buildPatched('short-log', name)
    const { failures } = await (parts[part] as Part)({
      seed,
      scale: 0.025,
      programs: broken,
    })

    tries.push(`${part} notices ${name}`)
    expect(failures.join('\n')).toMatch(noticed)
  },
)
