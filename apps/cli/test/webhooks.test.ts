import assert from 'node:assert/strict'
import { openStorage } from '@plant-store/persistence'
import { courierLimits, mintSecret, mintWebhookId } from '@plant-store/webhooks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Place } from './place.ts'

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.createStore()
})
afterEach(() => place[Symbol.asyncDispose]())

const url = 'https://shop.example/plants'

/** Runs a command of webhooks that must succeed, and resolves to its JSON. */
async function json(...args: readonly string[]) {
  const { code, stdout, stderr } = await place.run(['webhook', ...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

test('a secret is printed once, alone, and is in no list', async () => {
  const added = await place.run(`webhook add ${url}`)

  const listed = await place.run('webhook list')
  const [webhook] = await json('list')

  const { id } = webhook
  expect(added).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^whsec_[\w+/]{43}=\n$/),
    stderr: `The webhook ${id} gets every plant that is added from now on.\n`,
  })
  const head = 'ID +STATE +EVENTS +WAITING +GIVEN UP +OLDEST +FAILING SINCE +URL'
  expect(listed.stdout).toMatch(
    new RegExp(`^${head}\n${id} +active +added +0 +0 +- +- +${url}\n$`),
  )
  expect(webhook).toEqual({
    ...{ id: expect.stringMatching(/^wh_\w{12}$/), url, allowsPrivate: false },
    ...{ events: ['added'], createdAt: expect.stringMatching(/^\d{4}-/) },
    ...{ state: 'active', failures: 0, failingSince: null },
    ...{ waiting: 0, oldestSeconds: null, givenUp: 0 },
  })
})

test('a URL that is added twice is added, and named', async () => {
  const first = await json('add', url)

  const second = await place.run(`webhook add ${url}`)

  expect(second.code).toBe(0)
  expect(second.stderr).toContain(
    `The webhook ${first.id} has the same URL, and gets them too.\n`,
  )
})

test('a private address needs --allow-private', async () => {
  const privateUrl = 'http://127.0.0.1/'
  const { stderr } = await place.run(`webhook add ${privateUrl}`)

  const added = await json('add', privateUrl, '--allow-private')

  expect(stderr).toMatch(/^plant-store: the URL must be https without --allow-private/)
  expect(added).toMatchObject({ url: privateUrl, allowPrivate: true })
  expect(await json('list')).toMatchObject([{ url: privateUrl, allowsPrivate: true }])
})

test('the events are those that are named, and may be changed', async () => {
  const added = await place.run(`webhook add ${url} --events removed,changed`)
  const [{ id, events }] = await json('list')

  const changed = await place.run(`webhook events ${id} added,removed`)

  expect(added.stderr).toMatch(/gets every plant that is changed or removed from now on/)
  expect(events).toEqual(['changed', 'removed'])
  expect(changed.stdout).toBe(
    `${id} gets every plant that is added or removed from now on.\n`,
  )
  expect(await json('list')).toMatchObject([{ events: ['added', 'removed'] }])
})

test('an unknown webhook and wrong usage are refused in one line', async () => {
  const unknown = /there is no webhook wh_0: see plant-store webhook list/
  for (const command of ['remove', 'retry', 'rotate', 'log']) {
    await place.fails(`webhook ${command} wh_0`, 1, unknown)
  }
  await place.fails('webhook events wh_0 added', 1, unknown)
  await place.fails('webhook events wh_0 gone', 2, /It must/)
  await place.fails('webhook add shop.example', 2, /the URL must be an https URL/)
  for (const limit of ['0', '10000', '1x']) {
    const refused = /must be a number from 1 to 9999/
    await place.fails(`webhook log wh_0 --limit ${limit}`, 2, refused)
  }
})

test('what was given up and what waits is listed, retried and removed', async () => {
  const { id } = await json('add', url)
  await place.load(1, 3)
  await using storage = await openStorage({ url: place.url })
  const { outbox } = storage.webhooks
  const claimOne = async () => {
    const claim = await outbox.claim({ leaseMs: 60_000, rowsMax: 1, textBytesMax: 1_000 })
    assert(claim !== undefined, 'a delivery is due')
    return claim
  }
  for (const retryInMs of [undefined, 3_600_000]) {
    const claim = await claimOne()
    const [delivery] = claim.deliveries
    assert(delivery !== undefined, 'a claim has a delivery')
    const failed = { id: delivery.id, reason: 'answered 500', claimInMs: 0 }
    const attempt = retryInMs === undefined ? failed : { ...failed, retryInMs }
    await outbox.settle(claim, { delivered: [], failed: attempt })
  }
  await outbox.stop(id)

  const list = await place.run('webhook list')
  const log = await place.run(`webhook log ${id}`)
  const [first] = await json('log', id, '--limit', '1')
  const retried = await json('retry', id)
  const [listed] = await json('list')
  const rotated = await json('rotate', id)
  const claim = await claimOne()
  const removed = await place.run(`webhook remove ${id}`)

  const minute = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\dZ'
  expect(list.stdout).toMatch(
    new RegExp(`\n${id} +stopped +added +2 +1 +\\d+s +${minute} +${url}\n$`),
  )
  expect(log.stdout.trimEnd().split('\n')).toEqual([
    expect.stringMatching(/^PLANT +EVENT +SINCE +FAILED +NEXT ATTEMPT +REASON$/),
    expect.stringMatching(`^1 +added +${minute} +1 +given up +answered 500$`),
    expect.stringMatching(`^2 +added +${minute} +1 +${minute} +answered 500$`),
    expect.stringMatching(`^3 +added +${minute} +0 +${minute} +-$`),
  ])
  expect(first).toEqual({
    ...{ plant: '1', event: 'added', addedAt: expect.stringMatching(/^\d{4}-/) },
    ...{ attempts: 1, nextAttemptAt: null, reason: 'answered 500' },
  })
  expect(retried).toEqual({ retried: id })
  expect(listed).toMatchObject({ state: 'active', waiting: 3, givenUp: 0 })
  expect(rotated).toEqual({ id, secret: expect.stringMatching(/^whsec_/) })
  expect(claim).toMatchObject({ secret: rotated.secret })
  expect(removed.stdout).toBe(`${id} is removed.\n`)
  expect((await place.run('webhook list')).stdout).toBe('There are no webhooks.\n')
})

test('imports and removals are announced, unless they are told not to', async () => {
  const { id } = await json('add', url, '--events', 'added,removed')
  for (const option of ['', ' --no-announce']) {
    const line = `{"id":${option.length},"name":"n"}\n`
    await place.run(`import -${option}`, line)
    await place.run(`remove -${option}`, line)
  }

  const log = await json('log', id)

  expect(log).toMatchObject([
    { plant: '0', event: 'added' },
    { plant: '0', event: 'removed' },
  ])
})

test('there may be 100 webhooks', async () => {
  {
    await using storage = await openStorage({ url: place.url })
    for (let n = 1; n < courierLimits.webhooksMax; n++) {
      const webhook = { id: mintWebhookId(), url, allowsPrivate: false }
      const rest = { events: ['added'] as const, createdAt: new Date() }
      await storage.webhooks.add({ ...webhook, ...rest }, mintSecret())
    }
  }

  await json('add', url)

  await place.fails(`webhook add ${url}`, 1, /there are 100 webhooks already/)
})
