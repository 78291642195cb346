import { gzipSync } from 'node:zlib'
import { parsePlant } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
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

describe('an export of selected plants', () => {
  test.each([
    { options: ['--tag', 'herb'], names: ['Peppermint', 'Mint'] },
    { options: ['--tag', 'none'], names: [] },
    { options: ['--name-contains', 'MINT'], names: ['Peppermint', 'Mint'] },
    { options: ['--name-contains', 'lm'], names: ['ÉLM'] },
    { options: ['--name-contains', 'é'], names: [] },
    { options: ['--tag', 'herb', '--name-contains', 'pp'], names: ['Peppermint'] },
  ])('has $names with $options', async ({ options, names }) => {
    const { stdout, stderr } = await place.run(['export', ...options])

    const lines = stdout.split('\n').filter(line => line !== '')
    expect(lines.map(line => JSON.parse(line).name)).toEqual(names)
    expect(stderr).toMatch(new RegExp(`^${names.length} plants? exported`))
  })

  test('needs a text to search for', async () => {
    const args = ['export', '--name-contains', '']

    await place.fails(args, 2, /must have at least one character/)
  })
})

describe('a removal', () => {
  test('takes what an export wrote', async () => {
    const { stdout } = await place.run('export --tag herb')

    const removal = await place.run('remove -', stdout)

    expect(removal).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^2 plants removed in \d+s \([\d,]+\/s\)\n$/),
      stderr: '',
    })
    expect(await storedIds()).toEqual([3n, 4n])
  })

  test.each([
    { what: 'CSV', content: 'id,name,tag\n3,other,\n4,,\n' },
    { what: 'CSV with ids alone', content: 'ID\n3\n4\n' },
    { what: 'NDJSON with ids alone', content: '{"id":3}\n\n{"id":4}' },
    { what: 'gzip', content: gzipSync('{"id":3}\n{"id":4}\n') },
  ])('reads $what', async ({ content }) => {
    const { code } = await place.run('remove -', content)

    expect(code).toBe(0)
    expect(await storedIds()).toEqual([-1n, 2n ** 63n - 1n])
  })

  test('counts ids that are not stored, so it can be repeated', async () => {
    const content = '{"id":3}\n{"id":5}\n'
    await place.run('remove -', content)

    const { code, stdout } = await place.run('remove - --json', content)

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      read: 2,
      removed: 0,
      missing: 2,
      dryRun: false,
      seconds: expect.any(Number),
      interrupted: false,
    })
  })

  test('without ids says that the file has none', async () => {
    const { code, stdout } = await place.run('remove -', 'id\n')

    expect(code).toBe(0)
    expect(stdout).toBe('0 plants removed in 0s (0/s): none is in standard input\n')
  })

  test('that is dry counts what it would remove', async () => {
    const { code, stdout } = await place.run('remove - --dry-run', 'id\n3\n5\n')

    expect(code).toBe(0)
    expect(stdout).toBe(
      `1 stored plant, 1 not stored in ${place.store}; nothing was removed\n`,
    )
    expect(await storedIds()).toHaveLength(4)
  })

  test.each([
    { what: 'no JSON', line: 'x', reason: 'Unexpected token' },
    { what: 'no id', line: '{"name":"a"}', reason: 'id must be an integer' },
    { what: 'no object', line: 'null', reason: 'id must be an integer' },
    {
      what: 'an id that is no integer',
      line: '{"id":1.5}',
      reason: 'id must be an integer',
    },
  ])('ends at a line with $what, after the lines before', async ({ line, reason }) => {
    const content = `{"id":3}\n${line}\n{"id":4}\n`

    const { code, stderr } = await place.run('remove -', content)

    expect(code).toBe(1)
    expect(stderr).toMatch(/^plant-store: line 2: .* \(1 plant removed before\)\n$/)
    expect(stderr).toContain(reason)
    expect(await storedIds()).toEqual([-1n, 4n, 2n ** 63n - 1n])
  })

  test('makes no store', async () => {
    await using none = new Place()

    const { code, stderr } = await none.run('remove -', 'id\n1\n')

    expect(code).toBe(1)
    expect(stderr).toMatch(/there is no store at/)
  })
})
