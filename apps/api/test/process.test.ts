import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import {
  temporaryFolder as disposableFolder,
  isInstalled,
  launchServer,
  listenLocally,
  type Program,
  type Server,
  startServer,
  until,
} from '@plant-store/harness'
import { needs, portTakenForTest, temporaryFolder } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../src/config.ts'
import { findPort } from '../src/http/listening.ts'
import { ask, connectRaw } from './ask.ts'

const run = promisify(execFile)

const post = (url: string, token: string, plant: object) =>
  ask({ url }, 'POST /plants', { token, body: JSON.stringify(plant) })
const statusOf = async (url: string, token: string) =>
  (await ask({ url }, 'GET /plants', { token })).status
const noToken =
  'there is no access token: create one with npx --yes pnpm@12 plant-store token create --name NAME --scope write'
/** Everything that is kept in a folder, as the bytes that it is. */
const everythingIn = (folder: string) =>
  Buffer.concat(
    readdirSync(folder).map(name => readFileSync(join(folder, name))),
  ).toString('latin1')

/** Matches a token by its prefix or by its secret part. */
const patternOf = (token: string) =>
  new RegExp(`plantstore_|${token.slice('plantstore_'.length)}`)

const hasTerminals = isInstalled('script') && isInstalled('curl')

/** Sends what Ctrl-C at its terminal sends. */
function interrupt({ process, ended }: Program): Promise<number | string> {
  process.stdin.write('\x03')
  return ended
}

test('a wrong configuration ends it with 1 and a line for each variable', async () => {
  const folder = temporaryFolder()
  await using program = launchServer({
    folder,
    environment: {
      BASE_URL: 'example.org',
      BODY_LIMIT: 'large',
      ACCESS_TOKENS: 'se cret',
      LOG_FORMAT: 'journal',
      LOG_LEVEL: 'loud',
    },
  })
  expect(await program.ended).toBe(1)
  const lineStarts = program.errors().match(/^\S+ \S+/gm)
  expect(lineStarts?.sort()).toEqual([
    '<3>plant-store: ACCESS_TOKENS',
    '<3>plant-store: BASE_URL',
    '<3>plant-store: BODY_LIMIT',
    '<3>plant-store: LOG_LEVEL',
  ])
  expect(program.errors()).not.toContain('se cret')
  expect(program.output()).toBe('')
  expect(readdirSync(folder)).toEqual([])
})

describe('on a terminal', needs('script and curl', hasTerminals), () => {
  test('only the first start shows a token, which is written down nowhere', async () => {
    const folder = temporaryFolder()
    const taken = `${await portTakenForTest()}`
    await using failed = launchServer({
      onTerminal: true,
      folder,
      environment: { PORT: taken },
    })
    expect(await failed.ended).toBe(1)
    expect(failed.output()).toMatch(
      /^plant-store: [^\n]*address already in use 127\.0\.0\.1:\d+\r\n$/,
    )

    const environment = { LOG_FORMAT: '', BASE_URL: 'https://plants.example.org/green' }
    await using program = launchServer({ onTerminal: true, folder, environment })
    await expect.poll(program.output).toContain('curl ')
    const shown = () => stripVTControlCharacters(program.output())
    const servingPattern =
      / INFO: serving \/\S+\/data\/plant-store\.db on (\S+), look into it at (\S+)\r\n/
    const serving = servingPattern.exec(shown())
    assert(serving !== null, `no line says where it serves: ${shown()}`)
    const [, url = '', page = ''] = serving
    expect(serving.index).toBeLessThan(shown().indexOf('This is the first access token'))
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/green$/)
    expect((await fetch(page)).status).toBe(200)

    const [, token = ''] = /^ {2}(plantstore_\S+)\r?$/m.exec(program.output()) ?? []
    const [, command = ''] = /^ {2}(curl .*?)\r?$/m.exec(program.output()) ?? []
    expect(command).toContain(`curl ${url}/plants `)
    expect(command).toContain(token)
    const created = await run('sh', ['-c', command])
    expect(created.stdout).toBe('{"name":"Monstera","tag":"climber"}')
    const listed = await ask({ url }, 'GET /plants', { token })
    expect(listed.text).toBe('[{"id":1,"name":"Monstera","tag":"climber"}]')
    // An interrupt makes the terminal drop what nobody has read yet.
    await expect
      .poll(shown)
      .toMatch(
        /^\[[\d:.]+\] INFO: POST \/green\/plants 200 [\d.]+ ms \{"reqId":"[\w-]+","token":"first","plantId":"1"\}\r$/m,
      )
    expect(await interrupt(program)).toBe(0)
    expect(shown()).toMatch(/^(?:\^C)?\[[\d:.]+\] INFO: stopped\r$/m)
    expect(shown().match(/serving|listening/gi)).toHaveLength(1)
    expect(shown()).not.toContain(noToken)

    {
      await using storage = await openStorage({
        url: `file:${folder}/data/plant-store.db`,
      })
      expect(await storage.tokens.remove('first')).toBe(true)
    }
    await using next = await startServer({
      onTerminal: true,
      folder,
      environment: { LOG_LEVEL: 'trace' },
    })
    expect(await statusOf(next.url, token)).toBe(401)
    expect(await interrupt(next)).toBe(0)
    expect(next.output()).toContain(noToken)
    expect(readdirSync(join(folder, 'data'))).toEqual(['plant-store.db'])
    const kept = everythingIn(join(folder, 'data'))
    expect(kept).toContain('Monstera')
    expect(kept.match(patternOf(token)), 'in the store').toBeNull()
    expect(next.output().match(patternOf(token)), 'in the log').toBeNull()
  })
})

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s stops it cleanly, and the log says so',
  async signal => {
    await using server = await startServer({ folder: temporaryFolder() })

    expect(await server.end(signal)).toBe(0)

    expect(server.log.slice(-2)).toMatchObject([
      { msg: 'stopping', signal },
      { msg: 'stopped' },
    ])
  },
)

test('it runs from its sources, and reads nothing that a build has written', async () => {
  const folder = temporaryFolder()
  const preload = join(folder, 'refuse-builds.mjs')
  writeFileSync(
    preload,
    `import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, load) {
        if (/(packages|apps)\\/[^/]+\\/dist\\//.test(url)) {
          throw new Error(url + ' is written by a build')
        }
        return load(url, context)
      },
    })`,
  )
  const main = join(import.meta.dirname, '../src/main.ts')
  await using server = await startServer({
    command: [process.execPath, '--conditions=plant-store-source', main],
    environment: { ACCESS_TOKENS: 'plantstore_of-the-test' },
    folder,
    preload,
  })
  const { url } = server

  const created = await post(url, 'plantstore_of-the-test', { id: 1, name: 'Monstera' })

  expect(created.status).toBe(200)
  expect(await server.end()).toBe(0)
  expect(readdirSync(folder).sort()).toEqual(['data', 'refuse-builds.mjs'])
})

test('without a terminal no token is made, and the log says how to', async () => {
  const folder = temporaryFolder()
  await using server = await startServer({ folder })
  expect(await server.end()).toBe(0)
  expect(server.errors()).toBe('')
  expect(server.output()).toContain(noToken)
  expect(server.output()).not.toContain('plantstore_')
  await using storage = await openStorage({ url: `file:${folder}/data/plant-store.db` })
  expect(await storage.tokens.list()).toEqual([])
})

// TEST-NET-1 (RFC 5737) is nobody's address.
test.each(['192.0.2.1', 'no-such-host.invalid'])(
  'a server cannot listen on %s, in one line',
  async host => {
    const refusal = /^HOST must be a name or an address of this machine: .+$/
    await expect(findPort(readConfig({ HOST: host }))).rejects.toThrow(refusal)
  },
)

test('a signal ends a start that waits for its database, with 1', async () => {
  const silent = createServer()
  onTestFinished(() => void silent.close())
  const port = await listenLocally(silent)
  await using program = launchServer({
    folder: temporaryFolder(),
    environment: {
      DATABASE_URL: `postgres://plants:secret@127.0.0.1:${port}/plants`,
      DATABASE_TIMEOUT: '600s',
      SHUTDOWN_TIMEOUT: '100ms',
    },
  })
  const [socket] = await once(silent, 'connection')
  onTestFinished(() => void socket.destroy())
  expect(await program.end()).toBe(1)
  expect(program.output()).toContain('"msg":"did not stop in time"')
})

describe('a server with settings', () => {
  const place = disposableFolder()
  const folder = place.path
  const tokens = [
    'first-secret-of-20-characters',
    'second-secret-of-20-characters',
  ] as const
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
  const get = (path: string) => {
    const url = new URL(server.url).origin
    return ask({ url }, `GET ${path}`, { token: tokens[0] })
  }

  test('notifies systemd once it serves', async () => {
    await until('it is', () => existsSync(join(folder, 'notified')))
    expect(readFileSync(join(folder, 'notified'), 'utf8')).toBe(
      '/run/systemd/notify --ready\n',
    )
  })

  test('opens no debugger at SIGUSR1', async () => {
    server.process.kill('SIGUSR1')
    for (let n = 0; n < 20; n++) {
      expect(await statusOf(server.url, tokens[0]), `${n}`).toBe(200)
    }
  })

  test('admits the tokens of ACCESS_TOKENS, and no other', async () => {
    const headers = { 'x-forwarded-for': '203.0.113.7' }
    const wrongTokens = ['third-secret-of-20-characters', `${tokens[0]},`, tokens.join()]
    for (const token of tokens) {
      const { status } = await ask(server, 'GET /plants', { token, headers })
      expect(status, token).toBe(200)
    }
    for (const token of wrongTokens) {
      expect(await statusOf(server.url, token), token).toBe(401)
    }
  })

  test('has the path of BASE_URL before every route, and in the description', async () => {
    expect(server.url).toMatch(/\/green\/store$/)
    const created = await post(server.url, tokens[1], { id: 1, name: 'a' })
    expect(created.status).toBe(200)
    for (const page of ['/healthz', '/readyz', '/openapi.json', '/plants']) {
      expect((await get(`/green/store${page}`)).status, page).toBe(200)
      expect((await get(page)).status, page).toBe(404)
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

  test.each(['http://localhost:8080', 'https://plants.example'])(
    'lets pages of %s read its answers, also below the routes',
    async origin => {
      using client = await connectRaw(server.url)
      client.send(
        `GET /green/store/plants HTTP/1.1\r\nhost: h\r\nhost: again\r\norigin: ${origin}\r\n\r\n`,
      )
      const { status, headers } = await client.answer(undefined)

      expect(status).toBe(400)
      expect(headers.get('access-control-allow-origin')).toBe(origin)
    },
  )

  test('keeps its store where DATABASE_URL says, without a token in it', async () => {
    expect(await server.end()).toBe(0)
    expect(readdirSync(folder).sort()).toEqual(['a', 'notified', 'systemd-notify'])
    expect(everythingIn(join(folder, 'a/b'))).not.toContain('-secret')
    await using storage = await openStorage({ url: `file:${folder}/a/b/plants.db` })
    expect(await storage.tokens.list()).toEqual([])
  })

  test('logs its clients by TRUST_PROXY, its end, and no token', () => {
    expect(server.log.filter(({ msg }) => msg !== 'answered')).toMatchObject([
      { msg: 'listening', database: `${folder}/a/b/plants.db` },
      { msg: 'stopping' },
      { msg: 'stopped' },
    ])
    expect(server.output()).toContain('"client":"203.0.113.7"')
    expect(server.output()).not.toContain('-secret')
  })

  test('loads undici in no thread, because it costs 80 ms and 4 MiB', () => {
    // The main thread, the writer and two for HTTP.
    expect(server.errors()).toBe('without\n'.repeat(4))
  })
})
