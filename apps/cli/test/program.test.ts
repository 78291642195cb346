import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { commandProgram, startCommand } from '@plant-store/harness/command'
import { createTestSchema, portTakenForTest } from '@plant-store/harness/vitest'
import { afterEach, beforeEach, expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { Place } from './place.ts'

// Other tests run commands in their own process, and would not notice what keeps a
// program from ending.

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

/** The arguments, what they print, and the exit code. */
type Step = readonly [args: string, printed: RegExp, code?: number]

/** One of each way to open a store. */
const onBoth: readonly Step[] = [
  ['import - --json', /"inserted":1,.*"rejected":1/, 3],
  ['export', /"id":1,/],
]
const onFiles: readonly Step[] = [
  ...onBoth,
  ['check', /: intact; /],
  ['token create --name shop', /^plantstore_/],
  ['backup plants.backup', /checked/],
  ['restore plants.backup --force', /restored/],
  ['export --damaged salvaged', /none missing/],
  ['--version', new RegExp(`^${manifest.version}\n$`)],
  ['tokens', /^$/, 2],
]

async function runAll(steps: readonly Step[], at: Place): Promise<void> {
  for (const [args, printed, expected = 0] of steps) {
    const { code, stdout, stderr } = await at.start(
      args,
      '{"id":1,"name":"a"}\nno json\n',
    ).result
    expect({ code, stdout }, args).toEqual({
      code: expected,
      stdout: expect.stringMatching(printed),
    })
    const isRefused = expected === 2
    expect(stderr, args).toMatch(isRefused ? /^plant-store: .*\n$/ : /^/)
  }
}

test('commands end on a file, however they open it', () => runAll(onFiles, place))

test('commands end on PostgreSQL', async () => {
  await using database = await createTestSchema()
  await using inDatabase = new Place(database.url)
  await runAll(onBoth, inDatabase)
})

test('serve --check says what a start would do, and changes nothing', async () => {
  // In a process, as a test has other variables that resemble settings.
  const check = (environment: Record<string, string>, ...options: string[]) =>
    startCommand(['serve', '--check', ...options], { folder: place.folder, environment })
      .result
  const options = ['--port', '0', '--host', 'localhost', '--database', 'file:other.db']
  const overruled = { PORT: 'x', HOST: '256.0.0.1', DATABASE_URL: 'file:/dev/null' }
  expect(await check({ ...overruled, LOGLEVEL: 'warn' }, ...options)).toEqual({
    code: 0,
    stdout: `The settings are fine. A start would create a new store at ${resolve(place.folder, 'other.db')}.\n`,
    stderr: 'LOGLEVEL is not a setting: did you mean LOG_LEVEL?\n',
  })
  expect(readdirSync(place.folder)).toEqual([])
  expect(await check({ LOG_LEVEL: 'loud', PORT: 'x' })).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^plant-store: PORT must .*\nplant-store: LOG_LEVEL must .*\n$/,
    ),
  })
  const port = await portTakenForTest()
  expect(await check({ PORT: `${port}`, DATABASE_URL: 'file:/dev/null' })).toEqual({
    code: 1,
    stdout: '',
    stderr: `plant-store: cannot listen on PORT: address already in use 127.0.0.1:${port}\nplant-store: DATABASE_URL: /dev/null is not a file\n`,
  })
})

/** Runs the program in a shell, with its standard output in a file. */
function runInShell(script: string) {
  return spawnSync('/bin/sh', ['-c', script, process.execPath, commandProgram], {
    cwd: place.folder,
    env: { DATABASE_URL: place.url },
    encoding: 'utf8',
  })
}

test('an export fails if its file takes only a part of the last write', async () => {
  await place.load(0, 20)

  // One block is 512 or 1,024 bytes, and a plant takes more than 100.
  const { status, stderr } = runInShell('ulimit -f 1; exec "$0" "$1" export > plants')

  expect(status).toBe(1)
  expect(stderr).toMatch(/^plant-store: the output could not be written: .*\n$/)
})

test('serve takes no arguments, and options with values', async () => {
  await place.fails('serve 8080', 2, /^plant-store: too many arguments/)
  await place.fails('serve --port', 2, /argument missing/)
})
