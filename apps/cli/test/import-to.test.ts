import { readFileSync, writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { until } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { mintSecret, type WebhookId } from '@plant-store/webhooks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Place, type RunningServer } from './place.ts'

/** The import through a server, beside that into its store: they are to differ in nothing that a user sees. */

let place: Place
let server: RunningServer
const token = { PLANT_STORE_TOKEN: 'given' }
beforeEach(async () => {
  place = new Place()
  server = await place.serve()
})
afterEach(() => place[Symbol.asyncDispose]())

async function imported(target: Place, file: string, to?: string) {
  const args = ['import', file, '--rejects', 'rejects', '--json', ...(to === undefined ? [] : ['--to', to])]
  const { code, stdout, stderr } = await target.start(args, { env: token }).result
  const { seconds: _, ...result } = JSON.parse(stdout)
  return { code, stderr, ...result, rejected: result.rejects && readFileSync(target.path('rejects'), 'utf8') }
}

test('has the counts, the rejects and the exit code of an import into the store', async () => {
  const lines = Array.from({ length: 30_000 }, (_, n) => {
    if (n % 100 === 7) return `{"id":${n},"name":5}`
    if (n % 100 === 9) return 'no JSON'
    // Another plant, and the same.
    if (n % 10 === 3) return `{"id":0,"name":"plant ${n}"}`
    return `{"id":${n % 10 === 4 ? n - 2 : n},"name":"plant ${n % 10 === 4 ? n - 2 : n}","tag":""}`
  })
  const files = {
    'plants.ndjson': lines.join('\n'),
    'plants.csv': 'name,id\n"a ""quoted"" name",-1\nplain,-2\nplain,x\n',
    'plants.ndjson.gz': gzipSync(lines.slice(0, 100).join('\n')),
  }
  await using beside = new Place()
  for (const [name, content] of Object.entries(files)) {
    for (const each of [place, beside]) writeFileSync(each.path(name), content)
    const over = await imported(place, name, server.url)
    expect(over).toEqual(await imported(beside, name))
    expect(over).toMatchObject({ code: 3, stderr: '' })
    expect(await place.count()).toBe(await beside.count())
  }
  const again = await imported(place, 'plants.csv', `${server.url}/`)
  expect(again).toMatchObject({ inserted: 0, alreadyThere: 2 })
}, 60_000)

test('announces what it imports, unless it is told not to, as an import into the store does', async () => {
  await using storage = await openStorage({ url: place.url })
  const webhook = { id: 'w' as WebhookId, url: 'https://a.example/', allowsPrivate: false }
  await storage.webhooks.add({ ...webhook, createdAt: new Date() }, mintSecret())
  const ways = [[], ['--to', server.url], ['--strict']]
  for (const [n, way] of ways.entries()) {
    for (const [m, wish] of [[], ['--no-announce']].entries()) {
      writeFileSync(place.path('plants'), `{"id":${2 * n + m},"name":"n"}\n`)
      const { code } = await place.start(['import', 'plants', ...way, ...wish], { env: token }).result
      expect(code).toBe(0)
    }
  }
  const log = await storage.outbox.log(webhook.id, 10)
  expect(log.map(({ event }) => event.plant.id)).toEqual([0n, 2n, 4n])
}, 60_000)

test('keeps what it counted when it is interrupted', async () => {
  const input = new PassThrough()
  const lines = Array.from({ length: 30_000 }, (_, n) => `{"id":${n},"name":"n"}\n`).join('')
  const command = place.start(['import', '-', '--to', server.url, '--json'], { input, env: token })
  input.write(lines)
  await until(
    'the first lines to be there',
    async () => (await server.request('GET', '/plants/19999', 'given')) === 200,
  )
  command.process.kill('SIGINT')
  const { code, stdout } = await command.result
  expect(code).toBe(130)
  expect(JSON.parse(stdout)).toMatchObject({ inserted: await place.count(), interrupted: true })
  input.destroy()
})

test('says in one line why it cannot', async () => {
  writeFileSync(place.path('plants'), '{"id":1,"name":"n"}\n')
  const to = ['--to', server.url]
  const failing = async (args: readonly string[], env: Record<string, string> = token) => {
    const { code, stdout, stderr } = await place.start(['import', 'plants', ...args], { env }).result
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^plant-store: .*\n$/)
    return [code, stderr.slice('plant-store: '.length).trimEnd()]
  }
  expect(await failing(to, {})).toEqual([2, 'PLANT_STORE_TOKEN must be an access token of the server'])
  expect(await failing(to, { PLANT_STORE_TOKEN: 'wrong' })).toEqual([
    1,
    'the access token is unknown or was revoked (nothing was imported)',
  ])
  expect(await failing([...to, '--strict'])).toEqual([
    2,
    expect.stringMatching(/--to .* cannot be used .*--strict/),
  ])
  expect(await failing([...to, '--replace'])).toEqual([
    2,
    expect.stringMatching(/--to .* cannot be used .*--replace/),
  ])
  for (const url of ['localhost:3000', 'localhost'])
    expect(await failing(['--to', url])).toEqual([2, expect.stringContaining('http or https URL')])
  await server.end()
  const https = ['--to', server.url.replace('http:', 'https:')]
  expect(await failing(https)).toEqual([
    1,
    expect.stringMatching(/connection failed.*\(nothing was imported\)/),
  ])
}, 60_000)
