import { parsePlant } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Place } from './place.ts'

let place: Place
beforeEach(async () => {
  place = new Place()
  await using storage = await openStorage({ url: place.url })
  await storage.plants.saveAll([
    parsePlant({ id: 2n ** 63n - 1n, name: 'Mint', tag: 'herb' }),
    parsePlant({ id: -1n, name: 'Peppermint', tag: 'herb' }),
    parsePlant({ id: 3n, name: 'Oak', tag: 'Herb' }),
    parsePlant({ id: 4n, name: 'ÉLM' }),
  ])
})
afterEach(() => place[Symbol.asyncDispose]())

async function storedIds(): Promise<bigint[]> {
  const plants = await place.plants()
  return plants.map(({ id }) => id)
}

test.each([
  { options: ['--tag', 'herb'], names: ['Peppermint', 'Mint'] },
  { options: ['--tag', 'none'], names: [] },
  { options: ['--name-contains', 'lm'], names: ['ÉLM'] },
  { options: ['--name-contains', 'é'], names: [] },
  { options: ['--tag', 'herb', '--name-contains', 'PP'], names: ['Peppermint'] },
])('an export has $names with $options', async ({ options, names }) => {
  const { stdout, stderr } = await place.run(['export', ...options])

  const exported = [...stdout.matchAll(/"name":"([^"]*)"/g)].map(([, name]) => name)
  expect(exported).toEqual(names)
  expect(stderr).toMatch(new RegExp(`^${names.length} plants? exported`))
})

test('an export needs a text to search for', () =>
  place.fails(['export', '--name-contains', ''], 2, /must have at least one character/))

test('a removal takes what an export wrote', async () => {
  const { stdout } = await place.run('export --tag herb')

  const removal = await place.run('remove -', stdout)

  expect(removal).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^2 plants removed in \d+s \([\d,]+\/s\)\n$/),
    stderr: '',
  })
  expect(await storedIds()).toEqual([3n, 4n])
})

test('a removal needs ids alone, and counts those that are not stored', async () => {
  await place.run('remove -', 'ID\n3\n4\n')

  const { code, stdout } = await place.run('remove - --json', '{"id":3}\n\n{"id":-1}')

  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    ...{ read: 2, removed: 1, missing: 1 },
    ...{ dryRun: false, interrupted: false, seconds: expect.any(Number) },
  })
  expect(await storedIds()).toEqual([2n ** 63n - 1n])
})

test('a removal that is dry counts what it would remove', async () => {
  const { code, stdout } = await place.run('remove - --dry-run', 'id\n3\n5\n')

  expect(code).toBe(0)
  expect(stdout).toBe(
    `1 stored plant, 1 not stored in ${place.store}; nothing was removed\n`,
  )
  expect(await storedIds()).toHaveLength(4)
})

test.each([
  ['x', 'Unexpected token'],
  ['null', 'id must be an integer'],
  ['{"name":"a"}', 'id must be an integer'],
])('a removal ends at the line %s, after the lines before', async (line, reason) => {
  const { code, stderr } = await place.run('remove -', `{"id":3}\n${line}\n{"id":4}\n`)

  expect(code).toBe(1)
  expect(stderr).toMatch(/^plant-store: line 2: .* \(1 plant removed before\)\n$/)
  expect(stderr).toContain(reason)
  expect(await storedIds()).toEqual([-1n, 4n, 2n ** 63n - 1n])
})
