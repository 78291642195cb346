import { readdirSync, writeFileSync } from 'node:fs'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { launchServer, startServer } from '@plant-store/harness'
import { commandProgram, startCommand } from '@plant-store/harness/command'
import { createTestSchema, portTakenForTest } from '@plant-store/harness/vitest'
import { afterEach, beforeEach, expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { program } from '../src/program.ts'
import { countsInWords, Place } from './place.ts'

// Other tests run commands in their own process, and would not notice what keeps a program from ending.

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

/** The arguments, what they print, and the exit code. WEBHOOK is the id of the first webhook. */
type Step = readonly [args: string, printed: RegExp, code?: number]

/** One of each way to open a store. */
const onBoth: readonly Step[] = [
  ['import - --json', /"inserted":1,.*"rejected":1/, 3],
  ['export', /"id":1,/],
  [
    'check',
    new RegExp(`: ${countsInWords('1 plant', '0 webhooks', '0 tokens')}(?: in [\\d,]+ bytes)?, schema`),
  ],
  ['token create --name shop', /^plantstore_/],
  ['token create --name shop', /^$/, 1],
]
const onFiles: readonly Step[] = [
  ...onBoth,
  ['serve --check --port 0', /are fine/],
  ['token list', /shop/],
  ['token revoke shop', /revoked/],
  ['webhook add https://shop.example/', /^whsec_/],
  ['webhook list', /shop\.example/],
  ['webhook log WEBHOOK', /Nothing waits/],
  ['webhook rotate WEBHOOK', /^whsec_/],
  ['webhook retry WEBHOOK', /retried/],
  ['webhook remove WEBHOOK', /removed/],
  ['backup plants.backup', /checked/],
  ['restore plants.backup --force', /restored/],
  ['check plants.backup', /intact/],
  ['export --damaged salvaged', /none missing/],
  ['--version', new RegExp(`^${manifest.version}\n$`)],
  ['webhook --help', /^Usage: plant-store webhook /],
  ['tokens', /^$/, 2],
]

async function runAll(steps: readonly Step[], at: Place): Promise<void> {
  let webhook = ''
  for (const [args, printed, expected = 0] of steps) {
    const words = args.replace('WEBHOOK', webhook).split(' ')
    const { code, stdout, stderr } = await at.start(words, '{"id":1,"name":"a"}\nno json\n').result
    expect([args, code, stdout]).toEqual([args, expected, expect.stringMatching(printed)])
    if (expected !== 0 && expected !== 3) expect(stderr).toMatch(/^plant-store: .*\n$/)
    webhook = /wh_\w+/.exec(stderr)?.[0] ?? webhook
  }
}

test('every command is below', () => {
  const names = ({ commands }: CommandUnknownOpts): readonly string[] =>
    commands.length === 0 ? [''] : commands.flatMap(each => names(each).map(rest => `${each.name()} ${rest}`))
  expect(names(program).filter(name => !onFiles.some(([args]) => args.startsWith(name.trim())))).toEqual([])
})

test('every command ends on a file', () => runAll(onFiles, place))

test('commands end on PostgreSQL', async () => {
  await using database = await createTestSchema()
  await using inDatabase = new Place(database.url)
  await runAll(onBoth, inDatabase)
})

const command = [process.execPath, commandProgram, 'serve'] as const

test('serve answers requests on the store that the other commands work on, until a signal', async () => {
  const { folder } = place
  await using server = await startServer({ command, folder })
  const { code, stdout } = await startCommand(['token', 'create', '--name', 'shop'], { folder }).result
  expect(code).toBe(0)
  const authorization = `Bearer ${stdout.trim()}`
  const answer = await fetch(`${server.url}/plants`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: '{"id": 9007199254740993, "name": "Monstera"}',
  })
  expect([answer.status, await answer.text()]).toEqual([200, '{"name":"Monstera"}'])
  expect((await fetch(`${server.url}/docs/swagger-ui.css`)).status).toBe(200)
  expect((await startCommand(['export'], { folder }).result).stdout).toBe(
    '{"id":9007199254740993,"name":"Monstera"}\n',
  )
  expect(await server.end()).toBe(0)
  expect(server.errors()).toBe('')
})

test('serve ends with 1 and a line for each wrong variable', async () => {
  const environment = { LOG_LEVEL: 'loud', MAX_CONNECTIONS: '0' }
  await using server = launchServer({ command, folder: place.folder, environment })
  expect(await server.ended).toBe(1)
  expect(server.output()).toBe('')
  expect(server.errors()).toMatch(/^plant-store: LOG_LEVEL .+\nplant-store: MAX_CONNECTIONS .+\n$/)
})

test('serve --check says what a start would, and changes nothing', async () => {
  // In a process, as a test has other variables that resemble settings.
  const check = (environment = {}) =>
    startCommand(['serve', '--check'], { folder: place.folder, environment: { PORT: '0', ...environment } })
      .result
  const fine = { code: 0, stdout: 'The settings and the store are fine.\n', stderr: '' }
  expect(await check()).toEqual(fine)
  expect(await check({ LOGLEVEL: 'warn' })).toEqual({
    ...fine,
    stderr: 'LOGLEVEL is not a setting: did you mean LOG_LEVEL?\n',
  })
  expect(readdirSync(place.folder)).toEqual([])
  expect(await check({ LOG_LEVEL: 'loud', PORT: 'x' })).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^plant-store: PORT must .*\nplant-store: LOG_LEVEL must .*\n$/),
  })
  writeFileSync(place.path('none.db'), 'no database'.repeat(1_000))
  expect(await check({ DATABASE_URL: 'file:none.db' })).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^plant-store: DATABASE_URL: the store .*none\.db cannot be opened: /),
  })
  const port = await portTakenForTest()
  expect(await check({ PORT: `${port}`, DATABASE_URL: 'file:/dev/null' })).toEqual({
    code: 1,
    stdout: '',
    stderr: `plant-store: cannot listen on PORT: address already in use 127.0.0.1:${port}\nplant-store: DATABASE_URL: /dev/null is not a file\n`,
  })
})

test('serve takes the commonest settings as options, which win over the environment', async () => {
  const options = ['--port', '0', '--host', 'localhost', '--database', 'file:other.db']
  const environment = { PORT: 'x', HOST: '256.0.0.1', DATABASE_URL: 'file:/dev/null' }
  const checked = startCommand(['serve', '--check', ...options], { folder: place.folder, environment })
  expect(await checked.result).toMatchObject({ code: 0, stderr: '' })
  await place.fails('serve --port', 2, /argument missing/)
})

test('serve takes no arguments', () => place.fails('serve 8080', 2, /^plant-store: too many arguments/))
