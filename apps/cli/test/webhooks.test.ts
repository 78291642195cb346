import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { openStorage } from '@plant-store/persistence'
import { type FailedAttempt, mintSecret, mintWebhookId } from '@plant-store/webhooks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Place } from './place.ts'

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.createStore()
})
afterEach(() => place[Symbol.asyncDispose]())

const secret = /^whsec_[\w+/]{43}=\n$/

/** Runs a command of webhooks that must succeed, and resolves to its JSON. */
async function json(...args: readonly string[]) {
  const { code, stdout, stderr } = await place.run(['webhook', ...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

test('a secret is printed once, alone, and is in no list', async () => {
  const added = await place.run('webhook add https://shop.example/plants')
  expect(added).toEqual({
    code: 0,
    stdout: expect.stringMatching(secret),
    stderr: expect.stringMatching(
      /^The webhook wh_\w{12} gets every plant that is added from now on\.\n$/,
    ),
  })
  const [, id] = /(wh_\w+)/.exec(added.stderr) as RegExpExecArray
  const head = 'ID +STATE +EVENTS +WAITING +GIVEN UP +OLDEST +FAILING SINCE +URL'
  expect((await place.run('webhook list')).stdout).toMatch(
    new RegExp(
      `^${head}\n${id} +active +added +0 +0 +- +- +https://shop.example/plants\n$`,
    ),
  )
  expect(await json('list')).toEqual([
    {
      ...{ id, url: 'https://shop.example/plants', allowsPrivate: false },
      events: ['added'],
      createdAt: expect.stringMatching(/^\d{4}-/),
      ...{ state: 'active', failures: 0, failingSince: null },
      ...{ waiting: 0, oldestSeconds: null, givenUp: 0 },
    },
  ])
  expect(await place.run(`webhook log ${id}`)).toMatchObject({
    stdout: `Nothing waits for ${id}.\n`,
  })
  await json('remove', `${id}`)
  expect(await place.run('webhook list')).toMatchObject({
    stdout: 'There are no webhooks.\n',
  })
})

test('a webhook hears of the events that it was given', async () => {
  const url = 'https://shop.example/'
  const { id } = await json('add', url, '--events', 'removed,added')
  const change = await place.run(`webhook events ${id} changed`)

  expect(change.stdout).toBe(`${id} gets every plant that is changed from now on.\n`)
  expect(await json('list')).toMatchObject([{ events: ['changed'] }])
  await place.fails(`webhook events ${id} gone`, 2, /must be some of added, changed/)
  await place.fails('webhook events wh_none added', 1, /there is no webhook wh_none/)
})

test('a URL that is added twice is added, and named', async () => {
  const first = await json('add', 'https://shop.example/plants')

  const second = await place.run('webhook add https://shop.example/plants')

  expect(second.code).toBe(0)
  expect(second.stderr).toContain(
    `The webhook ${first.id} has the same URL, and gets them too.\n`,
  )
})

test('a private address or http needs --allow-private', async () => {
  await place.fails('webhook add shop.example', 2, /the URL must be an https URL/)
  await place.fails(
    'webhook add http://shop.example/',
    2,
    /the URL must be https without --allow-private/,
  )
  const url = 'http://127.0.0.1/'
  expect(await json('add', url, '--allow-private')).toMatchObject({
    url,
    allowPrivate: true,
  })
  expect(await json('list')).toMatchObject([{ url, allowsPrivate: true }])
})

test('an unknown webhook and wrong usage are refused in one line', async () => {
  await json('add', 'https://shop.example/')
  for (const command of ['remove', 'retry', 'rotate', 'log']) {
    await place.fails(
      `webhook ${command} wh_0`,
      1,
      /there is no webhook wh_0: see plant-store webhook list/,
    )
  }
  for (const limit of ['0', '10000', 'x1', '1x']) {
    await place.fails(
      `webhook log wh_0 --limit ${limit}`,
      2,
      /must be a number from 1 to 9999/,
    )
  }
})

test('what was given up and what waits is listed, retried and removed', async () => {
  const { id } = await json('add', 'https://shop.example/')
  await place.load(1, 3)
  await using storage = await openStorage({ url: place.url })
  const { outbox } = storage.webhooks
  const claimOne = async () => {
    const claim = await outbox.claim({ leaseMs: 60_000, rowsMax: 1, textBytesMax: 1_000 })
    assert(claim !== undefined, 'a delivery is due')
    return claim
  }
  const fail = async (attempt: Omit<FailedAttempt, 'id'>) => {
    const claim = await claimOne()
    const [delivery] = claim.deliveries
    assert(delivery !== undefined, 'a claim has a delivery')
    const failed = { ...attempt, id: delivery.id }
    await outbox.settle(claim, { delivered: [], failed })
  }
  await fail({ reason: 'answered 410', claimInMs: 0 })
  await fail({ reason: 'answered 500', retryInMs: 3_600_000, claimInMs: 0 })
  await outbox.stop(id)
  await place.load(4, 1)

  expect((await place.run('webhook list')).stdout).toMatch(
    new RegExp(
      `\n${id} +stopped +added +2 +1 +\\d+s +\\S{10} \\S+Z +https://shop.example/\n$`,
    ),
  )
  expect(await json('list')).toMatchObject([
    {
      state: 'stopped',
      waiting: 2,
      givenUp: 1,
      failures: 2,
      failingSince: expect.stringMatching(/^\d{4}-/),
      oldestSeconds: expect.any(Number),
    },
  ])
  const { stdout } = await place.run(`webhook log ${id}`)
  const minute = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\dZ'
  expect(stdout.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^PLANT +EVENT +SINCE +FAILED +NEXT ATTEMPT +REASON$/),
    expect.stringMatching(`^1 +added +${minute} +1 +given up +answered 410$`),
    expect.stringMatching(`^2 +added +${minute} +1 +${minute} +answered 500$`),
    expect.stringMatching(`^3 +added +${minute} +0 +${minute} +-$`),
  ])
  const log = await json('log', id, '--limit', '1')
  const addedAt = expect.stringMatching(/^\d{4}-/)
  expect(log).toEqual([
    {
      plant: '1',
      event: 'added',
      addedAt,
      attempts: 1,
      nextAttemptAt: null,
      reason: 'answered 410',
    },
  ])

  expect(await json('retry', id)).toEqual({ retried: id })
  const [retried] = await json('list')
  expect(retried).toMatchObject({ state: 'active', waiting: 3, givenUp: 0 })
  const rotated = await json('rotate', id)
  expect(rotated).toEqual({ id, secret: expect.stringMatching(/^whsec_/) })
  expect(await claimOne()).toMatchObject({ secret: rotated.secret })
  expect((await place.run(`webhook remove ${id}`)).stdout).toBe(`${id} is removed.\n`)
  expect(await json('list')).toEqual([])
})

test('an import is announced, unless it is told not to', async () => {
  const { id } = await json('add', 'https://shop.example/')
  await place.run('import -', '{"id":1,"name":"n"}\n')
  await place.run('import - --no-announce', '{"id":2,"name":"n"}\n')
  expect(await json('log', id)).toMatchObject([{ plant: '1' }])
})

test('where there is no store, none is made', async () => {
  await using none = new Place()
  for (const command of [
    'add https://shop.example/',
    'list',
    'log x',
    'remove x',
    'retry x',
    'rotate x',
  ]) {
    await none.fails(`webhook ${command}`, 1, /^plant-store: there is no store at /)
  }
  expect(readdirSync(none.folder)).toEqual([])
})

test('there may be 100 webhooks', async () => {
  {
    await using storage = await openStorage({ url: place.url })
    for (let n = 1; n < 100; n++) {
      const webhook = {
        id: mintWebhookId(),
        url: 'https://shop.example/',
        allowsPrivate: false,
        events: ['added'] as const,
      }
      await storage.webhooks.add({ ...webhook, createdAt: new Date() }, mintSecret())
    }
  }
  expect(await json('add', 'https://shop.example/')).toEqual({
    ...{
      id: expect.stringMatching(/^wh_/),
      url: 'https://shop.example/',
      events: ['added'],
      allowPrivate: false,
    },
    secret: expect.stringMatching(/^whsec_/),
  })
  await place.fails(
    'webhook add https://shop.example/',
    1,
    /there are 100 webhooks already/,
  )
})
