import { bun } from '@plant-store/harness/npm-program'
import { beforeAll, expect, test } from 'vitest'
import { parts } from '../src/parts.ts'

beforeAll(() => bun.fetch())

test.for(Object.entries(parts))('the part %s ends with a table', async ([, { run }]) => {
  const text = await run({ rounds: 1, warmUpSeconds: 1, plantsInFile: 100 })

  const rows = text.match(/^\| \S.* \|$/gm)
  expect(rows?.length).toBeGreaterThan(2)
})
