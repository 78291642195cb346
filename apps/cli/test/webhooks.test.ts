import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import {
  type Claim,
  type Delivery,
  type FailedAttempt,
  mintSecret,
  mintWebhookId,
  signedHeaders,
} from '@plant-store/webhooks'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
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

/** Fails as long as `status` is 500, and keeps what it got. */
async function listen() {
  const listener = { status: 500, got: [] as { body: string; headers: Record<string, string> }[] }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    listener.got.push({ body, headers: request.headers as Record<string, string> })
    response.writeHead(listener.status).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return Object.assign(listener, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` })
}

test('a secret is printed once, alone, and is in no list', async () => {
  const added = await place.run('webhook add https://shop.example/plants')
  expect(added).toEqual({
    code: 0,
    stdout: expect.stringMatching(secret),
    stderr: expect.stringMatching(/^The webhook wh_\w{12} gets every plant that is added from now on\.\n$/),
  })
  const [, id] = /(wh_\w+)/.exec(added.stderr) as RegExpExecArray
  const head = 'ID +STATE +WAITING +GIVEN UP +MISSED +OLDEST +FAILING SINCE +URL'
  expect((await place.run('webhook list')).stdout).toMatch(
    new RegExp(`^${head}\n${id} +active +0 +0 +0 +- +- +https://shop.example/plants\n$`),
  )
  expect(await json('list')).toEqual([
    {
      ...{ id, url: 'https://shop.example/plants', allowsPrivate: false },
      createdAt: expect.stringMatching(/^\d{4}-/),
      ...{ state: 'active', failures: 0, failingSince: null },
      ...{ waiting: 0, oldestSeconds: null, givenUp: 0, missed: 0 },
    },
  ])
  expect(await place.run(`webhook log ${id}`)).toMatchObject({ stdout: `Nothing waits for ${id}.\n` })
  await json('remove', `${id}`)
  expect(await place.run('webhook list')).toMatchObject({ stdout: 'There are no webhooks.\n' })
})

test('a URL that is no webhook is refused, and nothing is added', async () => {
  await place.fails('webhook add shop.example', 2, /the URL must be an https URL/)
  await place.fails('webhook add http://shop.example/', 2, /the URL must be https without --allow-private/)
  expect(await json('list')).toEqual([])
})

test('no command knows a webhook by another name, and wrong usage is told in one line', async () => {
  await json('add', 'https://shop.example/')
  for (const command of ['remove', 'retry', 'rotate', 'log'])
    await place.fails(`webhook ${command} wh_0`, 1, /there is no webhook wh_0: see plant-store webhook list/)
  for (const limit of ['0', '10000', 'x1', '1x'])
    await place.fails(`webhook log wh_0 --limit ${limit}`, 2, /must be a number from 1 to 9999/)
})

test('while a server runs: what fails is logged, retried and removed', async () => {
  const listener = await listen()
  const server = await place.serve()
  const { id } = await json('add', listener.url, '--allow-private')
  const guarded = await json('add', listener.url.replace('http://127.0.0.1', 'https://localhost'))
  await server.create(-9223372036854775808n)
  const refused = /^\S+ is a private address: the webhook needs --allow-private$/
  await until('it was refused', async () => refused.test((await json('log', guarded.id))[0].reason))
  await until('it failed', async () => (await json('log', id))[0].attempts > 0)

  expect(await json('log', id)).toMatchObject([
    { plant: '-9223372036854775808', reason: 'answered 500', nextAttemptAt: expect.any(String) },
  ])
  const { stdout } = await place.run(`webhook log ${id}`)
  expect(stdout).toMatch(
    /^PLANT +ADDED +FAILED +NEXT ATTEMPT +REASON\n-9223372036854775808 +\S+ \S+ +\d+ +\S+ \S+ +answered 500\n$/,
  )
  expect(await json('list')).toMatchObject([
    { id, state: 'active', waiting: 1, failures: expect.any(Number) },
    { waiting: 1 },
  ])
  const rotated = await json('rotate', id)
  expect(rotated).toEqual({ id, secret: expect.stringMatching(/^whsec_/) })
  listener.status = 200
  expect(await json('retry', id)).toEqual({ retried: id })
  await until('it is received', async () => (await json('list'))[0].waiting === 0)
  const { body, headers } = listener.got.at(-1) as (typeof listener.got)[number]
  const sentAtMs = Number(headers['webhook-timestamp']) * 1000
  const message = { id: `${headers['webhook-id']}`, sentAtMs, body }
  expect(headers).toMatchObject(signedHeaders(message, rotated.secret))
  expect((await place.run(`webhook remove ${id}`)).stdout).toBe(`${id} is removed.\n`)
  expect(await json('list')).toMatchObject([{ id: guarded.id }])
})

test('what was given up, what waits and what was missed is listed', async () => {
  const { id } = await json('add', 'https://shop.example/')
  await place.load(1, 3)
  {
    await using storage = await openStorage({ url: place.url })
    const fail = async (failed: Omit<FailedAttempt, 'id'>) => {
      const claim = await storage.webhooks.outbox.claim({ leaseMs: 60_000, rowsMax: 1, textBytesMax: 1_000 })
      const [first] = claim?.deliveries ?? []
      await storage.webhooks.outbox.settle(claim as Claim, {
        delivered: [],
        failed: { ...failed, id: (first as Delivery).id },
      })
    }
    await fail({ reason: 'answered 410', claimInMs: 0 })
    await fail({ reason: 'answered 500', retryInMs: 3_600_000, claimInMs: 0 })
    await storage.webhooks.outbox.stop(id)
  }
  await place.load(4, 1)

  expect((await place.run('webhook list')).stdout).toMatch(
    new RegExp(`\n${id} +stopped +2 +1 +1 +\\d+s +\\S{10} \\S+Z +https://shop.example/\n$`),
  )
  expect(await json('list')).toMatchObject([
    {
      ...{ state: 'stopped', waiting: 2, givenUp: 1, missed: 1, failures: 2 },
      ...{ failingSince: expect.stringMatching(/^\d{4}-/), oldestSeconds: expect.any(Number) },
    },
  ])
  const [{ oldestSeconds }] = await json('list')
  expect(oldestSeconds).toBeLessThan(60)
  const { stdout } = await place.run(`webhook log ${id}`)
  const minute = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\dZ'
  expect(stdout.trimEnd().split('\n').slice(1)).toEqual([
    expect.stringMatching(`^1 +${minute} +1 +given up +answered 410$`),
    expect.stringMatching(`^2 +${minute} +1 +${minute} +answered 500$`),
    expect.stringMatching(`^3 +${minute} +0 +${minute} +-$`),
  ])
  const [first, ...others] = await json('log', id, '--limit', '1')
  const addedAt = expect.stringMatching(/^\d{4}-/)
  expect(first).toEqual({ plant: '1', addedAt, attempts: 1, nextAttemptAt: null, reason: 'answered 410' })
  expect(others).toEqual([])
})

test('there may be 100 webhooks', async () => {
  {
    await using storage = await openStorage({ url: place.url })
    for (let n = 1; n < 100; n++) {
      const webhook = { id: mintWebhookId(), url: 'https://shop.example/', allowsPrivate: false }
      await storage.webhooks.add({ ...webhook, createdAt: new Date() }, mintSecret())
    }
  }
  expect(await json('add', 'https://shop.example/')).toEqual({
    ...{ id: expect.stringMatching(/^wh_/), url: 'https://shop.example/', allowPrivate: false },
    secret: expect.stringMatching(/^whsec_/),
  })
  await place.fails('webhook add https://shop.example/', 1, /there are 100 webhooks already/)
})
