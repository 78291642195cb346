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

  const [webhook] = await json('list')

  const { id } = webhook
  expect(added.stdout).toMatch(/^whsec_[\w+/]{43}=\n$/)
  expect(added.stderr).toBe(
    `The webhook ${id} gets every plant that is added from now on.\n`,
  )
  expect(webhook).toEqual({
    ...{ id: expect.stringMatching(/^wh_\w{12}$/), url, allowsPrivate: false },
    ...{ events: ['added'], createdAt: expect.stringMatching(/^\d{4}-/) },
    ...{ state: 'active', failures: 0, failingSince: null },
    ...{ waiting: 0, oldestSeconds: null, givenUp: 0 },
  })
  await place.session(`
    $ webhook list
    ID…STATE   EVENTS  WAITING  GIVEN UP  OLDEST  FAILING SINCE  URL
    ${id}  active  added   0        0         -       -              ${url}
    $ webhook add http://127.0.0.1/
    ! plant-store: the URL must be https without --allow-private…
    [2]
    $ webhook add http://127.0.0.1/ --allow-private --events removed,changed
    whsec_…
    ! The webhook wh_… gets every plant that is changed or removed from now on.
    $ webhook add ${url} --json
    {"id":"wh_…","url":"${url}","allowPrivate":false,"events":["added"],"secret":"whsec_…"}
    $ webhook add ${url}
    whsec_…
    ! The webhook …
    ! The webhook wh_… has the same URL, and gets them too.
    $ webhook events ${id} added,removed
    ${id} gets every plant that is added or removed from now on.`)
  expect(await json('list')).toMatchObject([
    { url, events: ['added', 'removed'] },
    { allowsPrivate: true, events: ['changed', 'removed'] },
    { url },
    { url },
  ])
})

test('an unknown webhook and wrong usage are refused in one line', async () => {
  for (const command of ['remove wh_0', 'rotate wh_0', 'log wh_0']) {
    await place.session(`
      $ webhook ${command}
      ! plant-store: there is no webhook wh_0: see plant-store webhook list
      [1]`)
  }
  await place.session(`
    $ webhook events wh_0 added
    ! plant-store: there is no webhook wh_0: see plant-store webhook list
    [1]
    $ webhook events wh_0 gone
    ! plant-store: …It must …
    [2]
    $ webhook add shop.example
    ! plant-store: the URL must be an https URL…
    [2]
    $ webhook log wh_0 --limit 0
    ! plant-store: …It must be a number from 1 to 9999. (see --help)
    [2]
    $ webhook log wh_0 --limit 10000
    ! plant-store: …It must be a number from 1 to 9999. (see --help)
    [2]`)
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

  const minute = '…-…-… …:…Z'
  await place.session(`
    $ webhook list
    ID…
    ${id}  stopped  added   2        1         …s      ${minute}  ${url}
    $ webhook log ${id}
    PLANT  EVENT  SINCE              FAILED  NEXT ATTEMPT       REASON
    1      added  ${minute}  1       given up           answered 500
    2      added  ${minute}  1       ${minute}  answered 500
    3      added  ${minute}  0       ${minute}  -
    $ webhook log ${id} --limit 1 --json
    [{"plant":"1","event":"added","addedAt":"…Z","attempts":1,"nextAttemptAt":null,"reason":"answered 500"}]
    $ webhook retry ${id}
    ${id} is retried.
    $ webhook list
    ID…
    ${id}  active  added   3        0         …
    $ webhook rotate ${id}
    whsec_…
    ! The old secret of ${id} no longer signs.`)
  const rotated = await json('rotate', id)
  const claim = await claimOne()
  await place.session(`
    $ webhook remove ${id} --json
    {"removed":"${id}"}
    $ webhook list
    There are no webhooks.`)

  expect(claim).toMatchObject({ secret: rotated.secret })
})

test('imports and removals are announced, unless they are told not to', async () => {
  const { id } = await json('add', url, '--events', 'added,changed,removed')
  for (const option of ['', ' --no-announce']) {
    const line = `{"id":${option.length},"name":"n"}\n`
    await place.run(`import -${option}`, line)
    await place.run(`import - --replace${option}`, line.replace('"n"', '"m"'))
    await place.run(`remove -${option}`, line)
  }

  const log = await json('log', id)

  expect(log).toMatchObject([
    { plant: '0', event: 'added' },
    { plant: '0', event: 'changed' },
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

  await place.session(`
    $ webhook add ${url}
    ! plant-store: there are 100 webhooks already: remove one
    [1]`)
})
