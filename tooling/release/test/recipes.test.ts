import { cpSync, globSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { pnpmCommand, runIn, start } from '../src/run.ts'

const root = join(import.meta.dirname, '../../..')
const recipes = globSync('docs/recipes/*.patch', { cwd: root }).sort()

/** Folders with installed or built files, or with the output of tests. */
const notCloned = new Set(['node_modules', 'dist', '.turbo', '.git', 'coverage', 'data'])

/** The tests that a change of plants must pass, by package. */
const tests: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  persistence: ['contract', 'statements', 'migrations'],
  http: ['contract', 'description'],
  client: ['description'],
}

test('there are recipes', () => {
  expect(recipes).not.toEqual([])
})

/** Each installs a clone and runs four packages' tests beside other tests. */
const timeout = 600_000

test.each(recipes)('%s applies, and its tests pass', { timeout }, async recipe => {
  const folder = realpathSync(temporaryFolder())
  cpSync(root, folder, {
    recursive: true,
    filter: path => path === root || !notCloned.has(basename(path)),
  })

  runIn(folder, 'git', 'apply', recipe)
  runIn(folder, ...pnpmCommand, 'install', '--frozen-lockfile', '--prefer-offline')

  for (const [name, files] of Object.entries(tests)) {
    const names = files.map(file => `${file}.test.ts`)
    const [program, ...args] = [...pnpmCommand, 'exec', 'vitest', 'run', ...names]
    const running = start(program, args, { cwd: join(folder, 'packages', name) })
    await expect(running, `the tests of ${name}`).resolves.toBeDefined()
  }
})
