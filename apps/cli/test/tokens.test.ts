import { hashToken, scopesByChoice } from '@plant-store/access'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { fromNow } from '../src/commands/tokens.ts'
import { Place } from './place.ts'

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.createStore()
})
afterEach(() => place[Symbol.asyncDispose]())

test('a token is printed once, alone, and is in no list', async () => {
  const created = await place.run('token create --name shop')
  expect(created).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^plantstore_[\w-]{43}\n$/),
    stderr: expect.stringMatching(
      /^The token of shop grants plants:read(?:, [a-z]+:(?:read|write))* and [a-z]+:write, and never expires\.\n$/,
    ),
  })
  const listed = await place.run('token list')
  expect(listed.stdout).toMatch(
    /^NAME +SCOPES +CREATED +EXPIRES +LAST USED\nshop +plants:read plants:write(?: [a-z]+:(?:read|write))* +\S+ \S+Z +never +never\n$/,
  )
  const endOfToken = created.stdout.trim().slice(-20)
  expect(listed.stdout).not.toContain(endOfToken)
  const json = await place.run('token list --json')
  expect(JSON.parse(json.stdout)).toEqual([
    {
      name: 'shop',
      scopes: scopesByChoice.write,
      createdAt: expect.stringMatching(/^\d{4}-/),
      expiresAt: null,
      lastUsedAt: null,
    },
  ])
})

test('a list shows which tokens expired, and when each was last used', async () => {
  {
    await using storage = await openStorage({ url: place.url })
    const createdAt = new Date('2026-01-02T03:04:05.678Z')
    const expiresAt = new Date('2020-01-01T00:00:00.000Z')
    await storage.tokens.insert(
      { name: 'old', scopes: [], createdAt, expiresAt },
      hashToken('a'),
    )
    await storage.tokens.markUsed(hashToken('a'), createdAt)
  }
  expect((await place.run('token list')).stdout).toMatch(
    /\nold .* 2020-01-01 00:00Z \(expired\) +2026-01-02 03:04Z\n$/,
  )
})

test('scopes and expiry are as asked for', async () => {
  // Another entity has scopes of its own.
  const isOurs = (scope: string) => /^(plants|metrics):/.test(scope)
  const create = async (...options: string[]) => {
    const { stdout } = await place.run([
      'token',
      'create',
      '--name',
      options.join(' '),
      ...options,
      '--json',
    ])
    const { scopes, createdAt, expiresAt } = JSON.parse(stdout)
    return [
      scopes.filter(isOurs),
      expiresAt && (Date.parse(expiresAt) - Date.parse(createdAt)) / 86_400_000,
    ]
  }
  expect(await create('--scope', 'read')).toEqual([['plants:read'], null])
  expect(await create('--scope', 'write')).toEqual([
    ['plants:read', 'plants:write'],
    null,
  ])
  // These scopes are of one entity alone.
  expect(await create('--scope', 'plants:read')).toEqual([['plants:read'], null])
  expect(await create('--scope', 'plants:write')).toEqual([
    ['plants:read', 'plants:write'],
    null,
  ])
  const both = ['metrics:read', 'plants:read']
  const ninety = expect.closeTo(90, 3)
  expect(
    await create('--scope', 'metrics', '--scope', 'read', '--expires', '90d'),
  ).toEqual([both, ninety])
  const { stderr } = await place.run('token create --name m --scope metrics --expires 1d')
  expect(stderr).toMatch(
    /^The token of m grants metrics:read, and expires at \d{4}-\d\d-\d\d \d\d:\d\dZ\.\n$/,
  )
  expect((await place.run('token list')).stdout).toMatch(
    /\nm +metrics:read +\S+ \S+Z +\S+ \d\d:\d\dZ +never\n/,
  )
})

test('a name is taken until its token is revoked', async () => {
  await place.run('token create --name shop')
  const taken =
    /^plant-store: a token named shop already exists: choose another name, or revoke it with plant-store token revoke\n$/
  await place.fails('token create --name shop', 1, taken)
  expect(await place.run('token revoke shop')).toEqual({
    code: 0,
    stdout: 'shop is revoked; servers refuse it within 5 s.\n',
    stderr: '',
  })
  await place.fails(
    'token revoke shop',
    1,
    /^plant-store: there is no token named shop\n$/,
  )
  expect(await place.run('token revoke shop --json')).toEqual({
    code: 1,
    stdout: '',
    stderr: '{"error":"there is no token named shop"}\n',
  })
  expect((await place.run('token create --name shop')).code).toBe(0)
  const again = await place.run('token revoke shop --json')
  expect(JSON.parse(again.stdout)).toEqual({ revoked: 'shop' })
  expect((await place.run('token list')).stdout).toBe('There are no tokens.\n')
})

test('wrong usage is told as JSON if that is asked for', async () => {
  expect(await place.run('token create --json')).toEqual({
    code: 2,
    stdout: '',
    stderr: `{"error":"required option '--name <name>' not specified (see --help)"}\n`,
  })
})

test('wrong usage is told in one line, and nothing is made', async () => {
  for (const [args, message] of [
    ['token create', /required option '--name <name>'/],
    [
      ['token', 'create', '--name', 'two\nlines'],
      /--name.* must be 1 to 100 characters on one line/,
    ],
    [
      'token create --name x --scope all',
      /must be one of read, write, metrics, plants:read, plants:write/,
    ],
    // A minute to some, a month to others.
    ['token create --name x --expires 1m', /must be a time from now, such as 30min,/],
    ['token revoke', /missing required argument 'name'/],
    ['tokens', /unknown command 'tokens'/],
    ['help tokens', /unknown command 'tokens'/],
    ['tokens --help', /unknown command 'tokens'/],
    ['help token creat', /unknown command 'creat'/],
    ['token list --all', /unknown option '--all'/],
  ] as const) {
    await place.fails(args, 2, message)
  }
  expect((await place.run('token list --json')).stdout).toBe('[]\n')
})

test('a time is a number with its unit, and nothing else', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  onTestFinished(() => void vi.useRealTimers())
  const times = ['1s', '2min', '3h', '10d', '1w', '999999s']
  const milliseconds = times.map(text => fromNow(text).getTime())
  expect(milliseconds).toEqual([
    1_000, 120_000, 10_800_000, 864_000_000, 604_800_000, 999_999_000,
  ])
  const wrongTimes = [
    '',
    '1',
    's',
    '0s',
    '01s',
    '1m',
    '1000000s',
    '1.5h',
    'x1s',
    '1sx',
    '-1s',
  ]
  for (const text of wrongTimes) {
    expect(() => fromNow(text), text).toThrow('must be a time from now')
  }
})
