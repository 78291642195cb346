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

  const listed = await place.run('token list')
  const json = await place.run('token list --json')

  expect(created).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^plantstore_[\w-]{43}\n$/),
    stderr: expect.stringMatching(
      /^The token of shop grants plants:read(?:, [a-z]+:(?:read|write))* and [a-z]+:write, and never expires\.\n$/,
    ),
  })
  expect(listed.stdout).toMatch(
    /^NAME +SCOPES +CREATED +EXPIRES +LAST USED\nshop +plants:read plants:write(?: [a-z]+:(?:read|write))* +\S+ \S+Z +never +never\n$/,
  )
  expect(JSON.parse(json.stdout)).toEqual([
    {
      ...{ name: 'shop', scopes: scopesByChoice.write },
      createdAt: expect.stringMatching(/^\d{4}-/),
      ...{ expiresAt: null, lastUsedAt: null },
    },
  ])
})

test('a list shows which tokens expired, and when each was last used', async () => {
  {
    await using storage = await openStorage({ url: place.url })
    const createdAt = new Date('2026-01-02T03:04:05.678Z')
    const expiresAt = new Date('2020-01-01T00:00:00.000Z')
    const token = { name: 'old', scopes: [], createdAt, expiresAt }
    await storage.tokens.insert(token, hashToken('a'))
    await storage.tokens.markUsed(hashToken('a'), createdAt)
  }

  const { stdout } = await place.run('token list')

  expect(stdout).toMatch(/\nold .* 2020-01-01 00:00Z \(expired\) +2026-01-02 03:04Z\n$/)
})

test.each([
  ['--scope read', ['plants:read'], null],
  ['--scope write', ['plants:read', 'plants:write'], null],
  ['--scope plants:read', ['plants:read'], null],
  ['--scope plants:write', ['plants:read', 'plants:write'], null],
  [
    '--scope metrics --scope read --expires 90d',
    ['metrics:read', 'plants:read'],
    expect.closeTo(90, 3),
  ],
])('token create %s grants %j', async (options, granted, days) => {
  const { stdout } = await place.run(`token create --name a --json ${options}`)

  const { scopes, createdAt, expiresAt } = JSON.parse(stdout)
  // Another entity has scopes of its own.
  expect(scopes.filter((scope: string) => /^(plants|metrics):/.test(scope))).toEqual(
    granted,
  )
  const lifeMs = Date.parse(expiresAt) - Date.parse(createdAt)
  expect(expiresAt && lifeMs / 86_400_000).toEqual(days)
})

test('a name is taken until its token is revoked', async () => {
  const create = 'token create --name shop --scope metrics --expires 1d'
  const { stderr } = await place.run(create)
  await place.fails(
    create,
    1,
    /^plant-store: a token named shop already exists: choose another name, or revoke it with plant-store token revoke\n$/,
  )

  const revoked = await place.run('token revoke shop')
  await place.fails('token revoke shop', 1, /: there is no token named shop\n$/)
  const failed = await place.run('token revoke shop --json')
  await place.run(create)
  const again = await place.run('token revoke shop --json')
  const listed = await place.run('token list')

  expect(stderr).toMatch(
    /^The token of shop grants metrics:read, and expires at \d{4}-\d\d-\d\d \d\d:\d\dZ\.\n$/,
  )
  expect(revoked.stdout).toBe('shop is revoked; servers refuse it within 5 s.\n')
  expect(failed.stderr).toBe('{"error":"there is no token named shop"}\n')
  expect(JSON.parse(again.stdout)).toEqual({ revoked: 'shop' })
  expect(listed.stdout).toBe('There are no tokens.\n')
})

test('wrong usage is told in one line, and nothing is made', async () => {
  for (const [args, message] of [
    [['token', 'create', '--name', 'two\nlines'], /must be 1 to 100 characters on one/],
    ['token create --name x --scope all', /one of read, write, metrics, plants:read, p/],
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

  const asJson = await place.run('token create --json')

  expect(asJson).toEqual({
    code: 2,
    stdout: '',
    stderr: `{"error":"required option '--name <name>' not specified (see --help)"}\n`,
  })
  expect((await place.run('token list --json')).stdout).toBe('[]\n')
})

test('a time is a number with its unit, and nothing else', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  onTestFinished(() => void vi.useRealTimers())
  const times = ['1s', '2min', '3h', '10d', '1w', '999999s']

  const seconds = times.map(text => fromNow(text).getTime() / 1_000)

  expect(seconds).toEqual([1, 120, 10_800, 864_000, 604_800, 999_999])
  for (const text of ['', '1', 's', '0s', '01s', '1m', '1000000s', '1.5h', '1sx']) {
    expect(() => fromNow(text), text).toThrow('must be a time from now')
  }
})
