import { cpSync, existsSync, globSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { pnpmCommand, runIn, start } from '../src/run.ts'

const root = join(import.meta.dirname, '../../..')
const recipes = globSync('docs/recipes/*.patch', { cwd: root }).sort()

/** Folders with installed or built files, or with the output of tests. */
const notCloned = new Set(['node_modules', 'dist', '.turbo', '.git', 'coverage', 'data'])

/** The tests that a change of plants must pass. */
const tests = [
  'packages/domain/test/',
  'packages/persistence/test/contract.test.ts',
  'packages/persistence/test/statements.test.ts',
  'packages/persistence/test/migrations.test.ts',
  'packages/http/test/contract.test.ts',
  'packages/http/test/description.test.ts',
  'packages/client/test/description.test.ts',
]

test('there are recipes, and each of these tests', () => {
  expect(recipes).not.toEqual([])
  expect(tests.filter(path => !existsSync(join(root, path)))).toEqual([])
})

describe('in a clone', () => {
  let folder: string
  beforeAll(() => {
    folder = realpathSync(temporaryFolder(afterAll))
    cpSync(root, folder, {
      recursive: true,
      filter: path => path === root || !notCloned.has(basename(path)),
    })
    runIn(folder, ...pnpmCommand, 'install', '--frozen-lockfile', '--prefer-offline')
  })

  test.each(recipes)('%s applies, and its tests pass', async recipe => {
    runIn(folder, 'git', 'apply', recipe)
    onTestFinished(() => {
      runIn(folder, 'git', 'apply', '--reverse', recipe)
    })

    const [program, ...args] = [...pnpmCommand, 'exec', 'vitest', 'run', ...tests]
    await expect(start(program, args, { cwd: folder })).resolves.toBeDefined()
  })
})
