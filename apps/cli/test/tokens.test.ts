import { hashToken, scopesByChoice } from '@plant-store/access'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fromNow, grantedScopes } from '../src/commands/tokens.ts'
import { Place } from './place.ts'

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.createStore()
})
afterEach(() => place[Symbol.asyncDispose]())

test('a token is printed once, alone, until it is revoked', async () => {
  const created = await place.run('token create --name shop')
  const json = await place.run('token list --json')

  expect(created.stdout).toMatch(/^plantstore_[\w-]{43}\n$/)
  expect(created.stderr).toMatch(
    /^The token of shop grants plants:read(?:, [a-z]+:(?:read|write))* and [a-z]+:write, and never expires\.\n$/,
  )
  expect(JSON.parse(json.stdout)).toEqual([
    {
      ...{ name: 'shop', scopes: scopesByChoice.write },
      createdAt: expect.stringMatching(/^\d{4}-/),
      ...{ expiresAt: null, lastUsedAt: null },
    },
  ])
  await place.session(`
    $ token list
    NAME  SCOPES…CREATED…EXPIRES  LAST USED
    shop  plants:read plants:write…-…:…Z  never    never
    $ token create --name shop --scope metrics
    ! plant-store: a token named shop already exists: choose another name, or revoke it with plant-store token revoke
    [1]
    $ token revoke shop
    shop is revoked; servers refuse it within 5 s.
    $ token revoke shop
    ! plant-store: there is no token named shop
    [1]
    $ token create --name shop --scope metrics --scope metrics --expires 1d
    plantstore_…
    ! The token of shop grants metrics:read, and expires at …-…-… …:…Z.
    $ token revoke shop --json
    {"revoked":"shop"}
    $ token list
    There are no tokens.`)
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

  await place.session(`
    $ token list
    NAME…
    old…2020-01-01 00:00Z (expired)  2026-01-02 03:04Z`)
})

test.each(
  Object.entries({
    metrics: ['metrics:read'],
    read: ['plants:read'],
    write: ['plants:read', 'plants:write'],
    'plants:read': ['plants:read'],
    'plants:write': ['plants:read', 'plants:write'],
  }),
)('the choice %s of --scope adds %j', (choice, granted) => {
  const scopes = grantedScopes(choice, ['metrics:read'])

  // Another entity has scopes of its own.
  const known = scopes.filter(scope => /^(plants|metrics):/.test(scope))
  expect(known).toEqual(['metrics:read', ...granted])
})

test('wrong usage is told in one line, and nothing is made', () =>
  place.session(`
    $ token create --name
    ! plant-store: option '--name <name>' argument missing (see --help)
    [2]
    $ token create --json
    ! {"error":"required option '--name <name>' not specified (see --help)"}
    [2]
    $ token create --name x --scope all
    ! plant-store: …It must be one of read, write, metrics, plants:read, p…
    [2]
    $ token create --name x --expires 1m
    ! plant-store: …It must be a time from now, such as 30min, 12h, 90d or 52w. (see --help)
    [2]
    $ token revoke
    ! plant-store: missing required argument 'name' (see --help)
    [2]
    $ tokens
    ! plant-store: unknown command 'tokens'…(see --help)
    [2]
    $ tokens --help
    ! plant-store: unknown command 'tokens'…(see --help)
    [2]
    $ help token creat
    ! plant-store: unknown command 'creat'…(see --help)
    [2]
    $ token list --all
    ! plant-store: unknown option '--all'…(see --help)
    [2]
    $ token list --json
    []`))

test('a name of two lines is refused', async () => {
  const args = ['token', 'create', '--name', 'two\nlines']

  const { stderr } = await place.run(args)

  expect(stderr).toMatch(/It must be 1 to 100 characters on one line, without .*\n$/)
})

test('a time is a number with its unit, and nothing else', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  const times = ['1s', '3h', '10d', '36500d']

  const seconds = times.map(text => fromNow(text).getTime() / 1_000)

  expect(seconds).toEqual([1, 10_800, 864_000, 3_153_600_000])
  for (const text of ['', '1', 's', '0s', '1m', '36501d', '1.5h', '1sx']) {
    expect(() => fromNow(text), text).toThrow('It must be a time from now')
  }
})
