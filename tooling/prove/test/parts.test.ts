import { readFileSync } from 'node:fs'
import { mayStartTraced, noTracer } from '@plant-store/harness'
import { anySeed } from '@plant-store/harness/random'
import { expect, type TestContext, test } from 'vitest'
import { breaks } from '../breaks/breaks.ts'
import type { Part } from '../src/part.ts'
import { parts } from '../src/parts.ts'
import { buildPatched, checkPatch } from '../src/programs.ts'

const seed = anySeed()
console.log(`seed ${seed}`)

/** Runs a part with a little of everything that it tries. */
async function run(name: string, { skip }: TestContext, ...patches: readonly string[]) {
  if (name.startsWith('power-cut') && !mayStartTraced()) {
    return skip(noTracer)
  }
  using programs = await buildPatched('short-log', ...patches)
  return await (parts[name] as Part)({ seed, scale: 0.025, programs })
}

// Each starts several programs, and the machine may be busy.
const timeout = 600_000

test.concurrent.for([
  ['kill', 3],
  ['announcements', 3],
  ['fuzz', 500],
  ['power-cut-copies', 10],
] as const)(
  '%s finds nothing wrong',
  { timeout },
  async ([name, leastTimes], context) => {
    const { failures, times } = await run(name, context)
    expect(failures).toEqual([])
    expect(times).toBeGreaterThanOrEqual(leastTimes)
  },
)

test.concurrent.for(Object.entries(breaks))(
  '%s is noticed',
  { timeout },
  async ([name, { part, noticed }], context) => {
    const { failures } = await run(part, context, name)
    expect(failures.join('\n')).toMatch(noticed)
  },
)

test.for(['short-log', ...Object.keys(breaks)])('the patch %s applies', async name => {
  await checkPatch(name)
})

test('the page on proofs lists every part, and every break with its part', () => {
  const page = readFileSync(new URL('../../../docs/proof.md', import.meta.url), 'utf8')
  const [partsOfPage = '', breaksOfPage = ''] = page.split(
    '| break | noticed by |\n| --- | --- |\n',
  )
  const named = [...partsOfPage.matchAll(/^\| `(.+?)` \|/gm)].map(([, name]) => name)
  expect(named.sort()).toEqual(Object.keys(parts).sort())
  const noticedBy = new Map(
    [...breaksOfPage.matchAll(/^\| (.+) \| (.+) \|$/gm)].map(([, does, part = '']) => [
      does,
      part.split(', '),
    ]),
  )
  expect(noticedBy.size).toBe(Object.keys(breaks).length)
  for (const { does, part } of Object.values(breaks)) {
    expect(noticedBy.get(does), does).toContain(part)
  }
})
