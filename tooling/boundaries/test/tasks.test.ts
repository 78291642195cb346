import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

/** What turbo would run again after a change: tried on a copy of the workspace, by the hashes that it keys its cache with. */

const root = join(import.meta.dirname, '../../..')
const copy = realpathSync(mkdtempSync(join(tmpdir(), 'plant-store-tasks-')))
afterAll(() => rmSync(copy, { recursive: true }))
const skipped = new Set(['node_modules', 'dist', '.turbo', '.git', 'coverage', 'data'])
cpSync(root, copy, { recursive: true, filter: path => !skipped.has(path.split('/').at(-1) as string) })

interface Task {
  readonly taskId: string
  readonly task: string
  readonly hash: string
  readonly dependencies: readonly string[]
}

function readTasks(): readonly Task[] {
  const turbo = join(root, 'node_modules/.bin/turbo')
  const args = ['run', 'build', 'test', 'check', 'coverage', '--dry=json', '--no-update-notifier']
  const output = execFileSync(turbo, args, {
    cwd: copy,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
  })
  return JSON.parse(output.slice(output.indexOf('{'))).tasks
}

const before = readTasks()

/** The tasks that run again once text is added to a file; it stays there. */
function changedBy(path: string): string[] {
  const old = new Map(readTasks().map(({ taskId, hash }) => [taskId, hash]))
  appendFileSync(join(copy, path), '\n')
  return readTasks()
    .filter(({ taskId, hash }) => old.get(taskId) !== hash)
    .map(({ taskId }) => taskId.replace('@plant-store/', ''))
    .sort()
}

/** The task itself and all that wait for it, directly or not. */
function waitingFor(taskId: string): string[] {
  const found = new Set([taskId])
  for (let size = 0; size < found.size; ) {
    size = found.size
    for (const task of before) if (task.dependencies.some(each => found.has(each))) found.add(task.taskId)
  }
  return [...found].map(id => id.replace('@plant-store/', ''))
}

test('nothing changed, nothing runs', () => {
  expect(readTasks()).toEqual(before)
  expect(before.filter(({ task }) => task === 'build').length).toBeGreaterThan(5)
})

test.each(['README.md', 'packages/domain/README.md'])('%s rebuilds nothing', path => {
  const changed = changedBy(path)
  expect(changed.filter(id => /#(build|check|coverage)$/.test(id))).toEqual([])
  // The examples in the packages' READMEs are run there.
  expect(changed.filter(id => id !== 'consumer#test')).toEqual([])
})

test('a test of the domain runs the tests of the domain again, and the rules on imports', () => {
  expect(changedBy('packages/domain/test/plant.test.ts')).toEqual([
    'boundaries#test',
    'domain#check',
    'domain#coverage',
    'domain#test',
  ])
})

test('the source of the domain rebuilds what depends on it, and nothing else', () => {
  const changed = changedBy('packages/domain/src/plant.ts')
  const built = changed.filter(id => id.endsWith('#build'))
  expect(built).toEqual(
    expect.arrayContaining(['api#build', 'client#build', 'domain#build', 'http#build', 'persistence#build']),
  )
  for (const name of ['access', 'json', 'boundaries']) expect(built).not.toContain(`${name}#build`)
  const own = ['domain#test', 'domain#check', 'domain#coverage', 'boundaries#test']
  expect(changed).toEqual([...new Set([...waitingFor('@plant-store/domain#build'), ...own])].sort())
})
