import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import {
  isInstalled,
  launchServer,
  listenLocally,
  type Program,
  startServer,
} from '@plant-store/harness'
import { needs, portTakenForTest, temporaryFolder } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../src/config.ts'
import { findPort } from '../src/http/listening.ts'
import { ask } from './ask.ts'

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

test('without a terminal no token is made, the log says how, and SIGHUP ends it', async () => {
  const folder = temporaryFolder()
  await using server = await startServer({ folder })

  expect(await server.end('SIGHUP')).toBe(0)

  expect(server.log.slice(-2)).toMatchObject([
    { msg: 'stopping', signal: 'SIGHUP' },
    { msg: 'stopped' },
  ])
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
