import { readFileSync } from 'node:fs'
import { commandProgram, serverProgram } from '@plant-store/harness'
import { anySeed } from '@plant-store/harness/random'
import { expect, test } from 'vitest'
import { breaks } from '../breaks/breaks.ts'
import type { Part } from '../src/part.ts'
import { parts } from '../src/parts.ts'
import type { Programs } from '../src/programs.ts'

const seed = anySeed()
console.log(`seed ${seed}`)

// Unlike those at night, they have a log of the usual length, and need no build.
const programs: Programs = {
  server: [process.execPath, serverProgram],
  commandLine: [process.execPath, commandProgram],
}

test.for([
  ['kill', 0.02, 2],
  ['fuzz', 0.01, 200],
  ['model', 0.01, 40],
] as const)(
  'the part %s finds nothing wrong',
  // It starts several programs, on a machine that may be busy.
  { timeout: 180_000 },
  async ([name, scale, leastTimes]) => {
    const { failures, times } = await (parts[name] as Part)({ seed, scale, programs })

    expect(failures).toEqual([])
    expect(times).toBeGreaterThanOrEqual(leastTimes)
  },
)

test('the page on proofs lists every part, and every break with its part', () => {
  const page = readFileSync(new URL('../../../docs/proof.md', import.meta.url), 'utf8')
  const [partsOfPage = '', after = ''] = page.split(
    '| break | noticed by |\n| --- | --- |\n',
  )
  const [breaksOfPage = ''] = after.split('\n\n')
  const rows = breaksOfPage.matchAll(/^\| (.+) \| (.+) \|$/gm)
  const noticedBy = new Map(
    Array.from(rows, ([, does, part = '']) => [does, part.split(', ')]),
  )

  const named = [...partsOfPage.matchAll(/^\| `(.+?)` \|/gm)].map(([, name]) => name)
  expect(named.sort()).toEqual(Object.keys(parts).sort())
  expect(noticedBy.size).toBe(Object.keys(breaks).length)
  for (const { does, part } of Object.values(breaks)) {
    expect(noticedBy.get(does), does).toContain(part)
  }
})
