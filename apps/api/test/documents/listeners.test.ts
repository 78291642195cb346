import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Plant, parsePlantListQuery } from '@plant-store/domain'
import { freePort, isInstalled, launch, startServer, until } from '@plant-store/harness'
import { createRandom } from '@plant-store/harness/random'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'
import { openStorage } from '@plant-store/persistence'
import {
  mintSecret,
  mintWebhookId,
  signedHeaders,
  type WebhookSecret,
  webhookEvents,
} from '@plant-store/webhooks'
import { expect, test } from 'vitest'
import { ask } from '../ask.ts'
import { prepareDatabase } from '../database.ts'

/** A night's run loads the store for a minute. */
const seconds = Number(process.env['LISTENER_SECONDS'] ?? 1)
const clients = 8
const ids = 40

const page = readFileSync(
  new URL('../../../../docs/webhooks.md', import.meta.url),
  'utf8',
)

/** Returns the listener of this name on the page. */
function listenerOf(name: string): string {
  const [, after = ''] = page.split(`<!-- ${name} -->\n`)
  const [, code = ''] = /^```\w+\n(.*?)^```/ms.exec(after) ?? []
  return code
}

/** Changes plants at random until the time is over, and a hundred times at least. */
async function load(server: { readonly url: string }, token: string) {
  const random = createRandom(Date.now())
  const endMs = performance.now() + seconds * 1_000
  let answered = 0
  const work = async () => {
    while (performance.now() < endMs || answered < 100) {
      const id = 2n ** 53n + BigInt(random.below(ids))
      const method = random.pick(['POST', 'PUT', 'PUT', 'DELETE'] as const)
      const target = method === 'POST' ? 'POST /plants' : `${method} /plants/${id}`
      const body = writeJsonRecord({ id, name: `state ${random.below(2 ** 30)}` })
      const headers = { 'content-type': 'application/json' }
      await ask(server, target, {
        token,
        ...(method !== 'DELETE' && { headers, body }),
      })
      answered++
    }
  }
  await Promise.all(Array.from({ length: clients }, work))
}

const listeners = [
  { name: 'listener.ts', command: process.execPath },
  { name: 'listener.py', command: 'python3' },
].filter(({ command }) => command !== 'python3' || isInstalled(command))

/** Starts a listener of the page, with the command of its language. */
async function startListener(name: string, command: string, secret: WebhookSecret) {
  const file = join(temporaryFolder(), name)
  writeFileSync(file, listenerOf(name))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/`
  const environment = { PORT: `${port}`, SECRET: secret }
  const listener = launch([command, file], { environment })
  await until('the listener', async () => {
    listener.assertRunning()
    return (await fetch(url).catch(() => undefined))?.status === 200
  })
  return { ...listener, url }
}

test.each(listeners)(
  'the $name of docs/webhooks.md keeps a copy in step',
  async ({ name, command }) => {
    const secret = mintSecret()
    await using database = await prepareDatabase()
    await using listener = await startListener(name, command, secret)
    const { url } = listener
    await using storage = await openStorage({ url: database.url })
    const webhook = { id: mintWebhookId(), url, allowsPrivate: true }
    const events = webhookEvents
    await storage.webhooks.add({ ...webhook, events, createdAt: new Date() }, secret)
    await using server = await startServer({ databaseUrl: database.url })

    await load(server, database.tokens.full)
    await until('every delivery', async () => {
      const [figures] = await storage.webhooks.outbox.figures()
      return figures?.waiting === 0
    })

    const lines = (await (await fetch(url)).text()).split('\n').filter(Boolean)
    const copy = lines.map(line => parseJsonRecord(line) as Plant)
    const sorted = copy.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const stored = await storage.plants.page(parsePlantListQuery({ limit: 1_000 }))
    expect(stored).not.toEqual([])
    expect(sorted).toEqual(stored)
    expect(server.warnings()).toEqual([])
  },
  (seconds + 60) * 1_000,
)

test.each(listeners)(
  'the $name refuses a wrong signature and an old delivery',
  async ({ name, command }) => {
    const secret = mintSecret()
    await using listener = await startListener(name, command, secret)
    const deliver = async (id: string, ageMs: number, usedSecret = secret) => {
      const body = `{"id":${id},"name":"Monstera"}`
      const message = { id: `added_${id}`, sentAtMs: Date.now() - ageMs, body }
      const headers = signedHeaders(message, usedSecret)
      return (await fetch(listener.url, { method: 'POST', headers, body })).status
    }

    // One from ahead of the clock comes nearer to it while it is on its way.
    const statuses = [
      await deliver('1', 0, mintSecret()),
      await deliver('2', 301_000),
      await deliver('3', -600_000),
      await deliver('4', 200_000),
    ]

    expect(statuses).toEqual([401, 401, 401, 204])
    const copy = await (await fetch(listener.url)).text()
    expect(copy).toBe('{"id":4,"name":"Monstera"}')
  },
)
