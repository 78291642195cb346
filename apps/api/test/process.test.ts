import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify, stripVTControlCharacters } from 'node:util'
import { hashToken } from '@plant-store/access'
import {
  temporaryFolder as disposableFolder,
  freePort,
  launchServer,
  type Program,
  type Server,
  startServer,
  until,
} from '@plant-store/harness'
import { needs, portTakenForTest, temporaryFolder } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, connectRaw } from './ask.ts'

const run = promisify(execFile)

const post = (url: string, token: string, plant: object) =>
  ask({ url }, 'POST /plants', { token, body: JSON.stringify(plant) })
const statusOf = async (url: string, token: string) => (await ask({ url }, 'GET /plants', { token })).status
const shownToken = (screen: string) => /^ {2}(plantstore_\S+)\r?$/m.exec(screen)?.[1]
const noToken = 'there is no access token: create one with plant-store token create --name NAME --scope write'
/** Everything that is kept in a folder, as the bytes that it is. */
const everythingIn = (folder: string) =>
  Buffer.concat(readdirSync(folder).map(name => readFileSync(join(folder, name)))).toString('latin1')

/** On a machine that is busy. */
const whileStarting = { timeout: 30_000 }

const hasTerminals = spawnSync('script', ['--version']).status === 0
const hasCurl = spawnSync('curl', ['--version']).status === 0
/** What Ctrl-C at its terminal does. */
function interrupt({ process, ended }: Program): Promise<number | string> {
  process.stdin.write('\x03')
  return ended
}

/** Whether anybody accepts connections there. */
async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const listening = await new Promise<boolean>(resolve => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  })
  socket.destroy()
  return listening
}

test('a wrong configuration ends it with 1, one message that names every wrong variable, and nothing begun', async () => {
  const folder = temporaryFolder()
  const port = await freePort()
  await using program = launchServer({
    folder,
    environment: {
      PORT: `${port}`,
      BASE_URL: 'example.org',
      BODY_LIMIT: 'large',
      ACCESS_TOKENS: 'se cret',
      LOG_LEVEL: 'loud',
    },
  })
  expect(await program.ended).toBe(1)
  const lines = program.errors().trimEnd().split('\n')
  expect(lines.map(line => line.split(' ').slice(0, 2).join(' ')).sort()).toEqual([
    'plant-store: ACCESS_TOKENS',
    'plant-store: BASE_URL',
    'plant-store: BODY_LIMIT',
    'plant-store: LOG_LEVEL',
  ])
  expect(program.errors()).not.toContain('se cret')
  expect(program.output()).toBe('')
  expect(readdirSync(folder)).toEqual([])
  expect(await isListening(port)).toBe(false)
})

test.each([
  ['a setting is invalid', { BODY_LIMIT: 'zz', LOG_LEVEL: 'loud' }, ['BODY_LIMIT', 'LOG_LEVEL']],
  ['the store cannot be reached', { DATABASE_URL: 'postgres://127.0.0.1:1/plants' }, ['DATABASE_URL:']],
])('the journal shows with -p err why a start failed: %s', async (_, environment, named) => {
  await using program = launchServer({
    folder: temporaryFolder(),
    environment: { ...environment, LOG_FORMAT: 'journal' },
  })
  expect(await program.ended).toBe(1)
  const lines = program.errors().trimEnd().split('\n')
  expect(lines.map(line => line.split(' ').slice(0, 2).join(' ')).sort()).toEqual(
    named.map(name => `<3>plant-store: ${name}`),
  )
})

describe('on a terminal', needs('script and curl', hasTerminals && hasCurl), () => {
  test('the log is readable, and a first start shows a token and a command that adds a plant unchanged', async () => {
    const environment = { LOG_FORMAT: '', BASE_URL: 'https://plants.example.org/green' }
    await using program = launchServer({ onTerminal: true, folder: temporaryFolder(), environment })
    await expect.poll(program.output, whileStarting).toContain('curl ')
    const shown = () => stripVTControlCharacters(program.output())
    const serving = / INFO: serving \/\S+\/data\/plant-store\.db on (\S+), look into it at (\S+)\r\n/.exec(
      shown(),
    )
    const [, url = '', page = ''] = serving as RegExpExecArray
    expect(serving?.index).toBeLessThan(shown().indexOf('This is the first access token'))
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/green$/)
    expect((await fetch(page)).status).toBe(200)

    const token = shownToken(program.output()) as string
    const command = /^ {2}(curl .*)\r?$/m.exec(program.output())?.[1]?.trimEnd() as string
    expect(command).toContain(`curl ${url}/plants `)
    expect(command).toContain(token)
    expect((await run('sh', ['-c', command])).stdout).toBe('{"name":"Monstera","tag":"climber"}')
    expect(JSON.parse((await run('sh', ['-c', command])).stdout)).toMatchObject({ error: 40003 })
    expect(JSON.parse((await ask({ url }, 'GET /plants', { token })).text)).toEqual([
      { id: 1, name: 'Monstera', tag: 'climber' },
    ])

    expect(await interrupt(program)).toBe(0)
    // The terminal echoes the interrupt, which may come before lines that were gathered.
    expect(shown()).toMatch(
      /^(?:\^C)?\[[\d:.]+\] INFO: POST \/green\/plants 200 [\d.]+ ms \{"reqId":"[\w-]+","token":"first","plantId":"1"\}\r$/m,
    )
    expect(shown()).toMatch(/^(?:\^C)?\[[\d:.]+\] INFO: stopped\r$/m)
    expect(shown().match(/serving|listening/gi)).toHaveLength(1)
    expect(shown()).not.toContain(noToken)
  })

  test('no other start shows one, the first still works until it is revoked, and it is written down nowhere', async () => {
    const folder = temporaryFolder()
    await using first = await startServer({ onTerminal: true, folder })
    const firstUrl = first.url
    await expect.poll(() => shownToken(first.output())).toBeDefined()
    const token = shownToken(first.output()) as string
    expect((await post(firstUrl, token, { id: 7, name: 'Calathea' })).status).toBe(200)
    expect(everythingIn(join(folder, 'data'))).not.toContain(token)
    expect(await interrupt(first)).toBe(0)

    await using second = await startServer({ onTerminal: true, folder, environment: { LOG_LEVEL: 'trace' } })
    const secondUrl = second.url
    expect((await post(secondUrl, token, { id: 7, name: 'Calathea' })).status).toBe(400)
    expect((await post(secondUrl, token, { id: 8, name: 'Calathea' })).status).toBe(200)
    expect(await interrupt(second)).toBe(0)
    expect(readdirSync(join(folder, 'data'))).toEqual(['plant-store.db'])
    const kept = everythingIn(join(folder, 'data'))
    expect(kept).toContain('Calathea')
    for (const place of [kept, second.output()]) {
      expect(place).not.toContain('plantstore_')
      expect(place).not.toContain(token.slice('plantstore_'.length))
    }

    {
      await using storage = await openStorage({ url: `file:${folder}/data/plant-store.db` })
      expect(await storage.tokens.remove('first')).toBe(true)
    }
    await using third = await startServer({ onTerminal: true, folder })
    expect(await statusOf(third.url, token)).toBe(401)
    expect(await interrupt(third)).toBe(0)
    expect(third.output()).toContain(noToken)
    expect(third.output()).not.toContain('plantstore_')
  })

  test('a start that fails at the port shows no token, and the next one that works does', async () => {
    const folder = temporaryFolder()
    const port = await portTakenForTest()
    await using failed = launchServer({ onTerminal: true, folder, environment: { PORT: `${port}` } })
    expect(await failed.ended).toBe(1)
    expect(failed.output()).toMatch(/^plant-store: [^\n]*address already in use 127\.0\.0\.1:\d+\r\n$/)

    await using next = await startServer({ onTerminal: true, folder })
    const { url } = next
    await expect.poll(() => shownToken(next.output())).toBeDefined()
    expect(await statusOf(url, shownToken(next.output()) as string)).toBe(200)
    expect(await interrupt(next)).toBe(0)
  })
})

test('without a terminal no token is made: the log says how to create one, until there is one', async () => {
  const folder = temporaryFolder()
  const url = `file:${folder}/data/plant-store.db`
  await using first = await startServer({ folder })
  expect(await first.end()).toBe(0)
  expect(first.errors()).toBe('')
  expect(first.output()).toContain(noToken)
  expect(first.output()).not.toContain('plantstore_')
  {
    await using storage = await openStorage({ url })
    expect(await storage.tokens.list()).toEqual([])
    const token = { name: 'flora', scopes: ['plants:read'], createdAt: new Date() } as const
    await storage.tokens.insert(token, hashToken('secret'))
  }
  await using second = await startServer({ folder })
  expect(await statusOf(second.url, 'secret')).toBe(200)
  expect(await second.end()).toBe(0)
  expect(second.output()).not.toContain(noToken)
})

const notOurs = /^plant-store: HOST must be a name or an address of this machine: /
const notOpened = (store: string) =>
  new RegExp(`^plant-store: DATABASE_URL: the store ${store} cannot be opened: [^\n]+\n$`)

test.each([
  // TEST-NET-1 (RFC 5737) is nobody's address.
  ['an address that is not here', 'HOST=192.0.2.1', notOurs],
  ['a host that nobody knows', 'HOST=no-such-host.invalid', notOurs],
  ['a file that is no store', 'DATABASE_URL=file:notes.txt', notOpened('/.*/notes.txt')],
  [
    'a server that is not there',
    'DATABASE_URL=postgres://a:secret@127.0.0.1:1/plants',
    notOpened('postgres://a@127.0.0.1:1/plants'),
  ],
])('%s ends it with 1 and one clear line', async (_, setting, reason) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'notes.txt'), 'Water the plants.\n')
  const [name = '', value = ''] = setting.split('=')
  await using program = launchServer({ folder, environment: { ACCESS_TOKENS: 'secret', [name]: value } })
  expect(await program.ended).toBe(1)
  expect(program.errors()).toMatch(/^plant-store: [^\n]+\n$/)
  expect(program.errors()).toMatch(reason)
  expect(readFileSync(join(folder, 'notes.txt'), 'utf8')).toBe('Water the plants.\n')
})

test('of programs that start on one port at the same moment one listens, and the others say why not', async () => {
  const port = await freePort()
  const environment = { ACCESS_TOKENS: 'secret', HTTP_THREADS: '2', PORT: `${port}` }
  const programs = Array.from({ length: 3 }, () => launchServer({ folder: temporaryFolder(), environment }))
  const outcomes = await Promise.all(
    programs.map(program =>
      Promise.race([program.logged('listening').catch(() => program.ended), program.ended]),
    ),
  )
  expect(outcomes.filter(outcome => outcome === 1)).toHaveLength(programs.length - 1)
  for (const [index, outcome] of outcomes.entries()) {
    const program = programs[index] as (typeof programs)[number]
    if (outcome === 1) expect(program.errors()).toMatch(/^plant-store: cannot listen on PORT: [^\n]+\n$/)
    else expect(await program.end()).toBe(0)
  }
})

test('a server ends with 1 when it cannot stop in time', async () => {
  const folder = temporaryFolder()
  await using program = await startServer({
    folder,
    environment: { ACCESS_TOKENS: 'secret', SHUTDOWN_TIMEOUT: '300ms' },
  })
  const { url } = program
  // Somebody else holds the lock, so that a change can be neither made nor refused yet.
  using other = new DatabaseSync(join(folder, 'data/plant-store.db'))
  other.exec('begin immediate')
  const answer = post(url, 'secret', { id: 1, name: 'a' }).then(
    ({ status }) => status,
    () => 'cut',
  )
  await expect
    .poll(async () => (await ask(program, 'GET /metrics', { token: 'secret' })).text)
    .toContain('plant_store_waiting_changes 1\n')
  program.process.kill('SIGTERM')
  await program.logged('did not stop in time')
  // The process ends once the writer no longer waits for the lock, which can take it before.
  other.exec('rollback')
  expect(await program.ended).toBe(1)
  expect(['cut', 200]).toContain(await answer)
})

test.each(['journal', 'pretty'])('LOG_FORMAT chooses %s without a terminal', async format => {
  const environment = { LOG_FORMAT: format, ACCESS_TOKENS: 'given', HTTP_THREADS: '2' }
  const folder = temporaryFolder()
  await using program = launchServer({ folder, environment })
  await expect.poll(program.output, whileStarting).toMatch(/plant-store\.db.*\n/)
  expect(await program.end()).toBe(0)
  const lines = program.output().trimEnd().split('\n')
  const database = join(folder, 'data', 'plant-store.db')
  if (format === 'journal') for (const line of lines) expect(line).toMatch(/^<6>\{"level":"info",.*\}$/)
  else {
    expect(program.output()).not.toContain('\x1b')
    expect(lines).toEqual([
      expect.stringMatching(new RegExp(`^\\[[\\d:.]+\\] INFO: serving ${database} on `)),
      expect.stringMatching(/^\[[\d:.]+\] INFO: stopping \{"signal":"SIGTERM"\}$/),
      expect.stringMatching(/^\[[\d:.]+\] INFO: stopped$/),
    ])
  }
})

describe('a server with settings', () => {
  const place = disposableFolder()
  const folder = place.path
  const tokens = ['first-secret', 'second-secret'] as const
  /** Printed by each thread at its end. */
  const report = `process.on('exit', () => {
    const isLoaded = process.moduleLoadList.some(name => name.includes('undici'))
    process.getBuiltinModule('fs').writeSync(2, isLoaded ? 'with undici\\n' : 'without\\n')
  })`
  let server: Server
  beforeAll(async () => {
    const notify = '#!/bin/sh\necho "$NOTIFY_SOCKET $*" > notified\n'
    writeFileSync(join(folder, 'systemd-notify'), notify, { mode: 0o700 })
    server = await startServer({
      folder,
      environment: {
        ACCESS_TOKENS: tokens.join(', '),
        BASE_URL: 'https://plants.example.org/green/store/',
        BODY_LIMIT: '1KiB',
        CORS_ORIGINS: 'http://localhost:8080, https://plants.example',
        DATABASE_URL: 'file:a/b/plants.db',
        HTTP_THREADS: '2',
        LOG_FORMAT: 'json',
        NOTIFY_SOCKET: '/run/systemd/notify',
        PATH: `${folder}:/bin`,
        TRUST_PROXY: '127.0.0.1',
      },
      preload: `data:text/javascript,${encodeURIComponent(report)}`,
    })
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    place[Symbol.dispose]()
  })
  const get = (path: string) => ask({ url: new URL(server.url).origin }, `GET ${path}`, { token: tokens[0] })

  test('notifies systemd once it serves', async () => {
    await until('it is', () => existsSync(join(folder, 'notified')))
    expect(readFileSync(join(folder, 'notified'), 'utf8')).toBe('/run/systemd/notify --ready\n')
  })

  test('opens no debugger for SIGUSR1, which would show every user of the machine its memory', async () => {
    server.process.kill('SIGUSR1')
    for (let n = 0; n < 20; n++) expect(await statusOf(server.url, tokens[0])).toBe(200)
  })

  test('admits the tokens of ACCESS_TOKENS, and no other', async () => {
    const headers = { 'x-forwarded-for': '203.0.113.7' }
    for (const token of tokens)
      expect((await ask(server, 'GET /plants', { token, headers })).status).toBe(200)
    for (const wrong of ['third-secret', 'first-secret,', 'first-secret, second-secret'])
      expect(await statusOf(server.url, wrong)).toBe(401)
  })

  test('has the path of BASE_URL before every route, and in the description', async () => {
    expect(server.url).toMatch(/\/green\/store$/)
    expect((await post(server.url, tokens[1], { id: 1, name: 'a' })).status).toBe(200)
    for (const page of ['/healthz', '/readyz', '/openapi.json', '/plants']) {
      expect((await get(`/green/store${page}`)).status).toBe(200)
      expect((await get(page)).status).toBe(404)
    }
    expect(JSON.parse((await get('/green/store/openapi.json')).text)).toMatchObject({
      servers: [{ url: 'https://plants.example.org/green/store' }],
    })
    expect((await get('/green/store/plants?limit=1')).headers.get('link')).toBeNull()
    await post(server.url, tokens[0], { id: 2, name: 'b' })
    expect((await get('/green/store/plants?limit=1')).headers.get('link')).toBe(
      '</green/store/plants?limit=1&after=1>; rel="next"',
    )
  })

  test('lets the pages of CORS_ORIGINS read its answers, also below the routes', async () => {
    for (const origin of ['http://localhost:8080', 'https://plants.example']) {
      using client = await connectRaw(server.url)
      client.send(`GET /green/store/plants HTTP/1.1\r\nhost: h\r\nhost: again\r\norigin: ${origin}\r\n\r\n`)
      const answer = await client.answer(undefined)
      expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([400, origin])
    }
  })

  test('keeps its store where DATABASE_URL says, from where it was started, and no token in it', async () => {
    expect(await server.end()).toBe(0)
    expect(readdirSync(folder).sort()).toEqual(['a', 'notified', 'systemd-notify'])
    expect(everythingIn(join(folder, 'a/b'))).not.toContain('-secret')
    await using storage = await openStorage({ url: `file:${folder}/a/b/plants.db` })
    expect(await storage.tokens.list()).toEqual([])
  })

  test('logs what it serves, to whom TRUST_PROXY says, and how it ends, and no token', () => {
    expect(server.log.filter(({ msg }) => msg !== 'answered')).toMatchObject([
      { msg: 'listening', database: `${folder}/a/b/plants.db` },
      { msg: 'stopping' },
      { msg: 'stopped' },
    ])
    expect(server.output()).toContain('"client":"203.0.113.7"')
    expect(server.output()).not.toContain('-secret')
  })

  test('loads undici in no thread, as an import of node:http does: it costs 80 ms and 4 MiB', () => {
    // The main thread, the writer and two for HTTP.
    expect(server.errors()).toBe('without\n'.repeat(4))
  })
})
