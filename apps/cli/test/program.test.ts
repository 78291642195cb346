import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
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

/** Runs an import, which opens the store in threads and hears signals, and a command. */
async function expectEnds(at: Place, args: string, printed: RegExp): Promise<void> {
  const imported = await at.start('import - --json', '{"id":1,"name":"a"}\nno json\n')
    .result
  const other = await at.start(args).result

  const counts = expect.stringMatching(/"inserted":1,.*"rejected":1/)
  expect(imported).toMatchObject({ code: 3, stdout: counts })
  expect(other).toMatchObject({ code: 0, stdout: expect.stringMatching(printed) })
}

test('commands end on a file, however they open it', () =>
  expectEnds(place, 'backup plants.backup', /checked/))

test('commands end on PostgreSQL', async () => {
  await using database = await createTestSchema()
  await using inDatabase = new Place(database.url)
  await expectEnds(inDatabase, 'export', /"id":1,/)
})

test('serve --check says what a start would do, and changes nothing', async () => {
  // In a process, as a test has other variables that resemble settings.
  const check = (environment: Record<string, string>, ...options: string[]) =>
    startCommand(['serve', '--check', ...options], { folder: place.folder, environment })
      .result
  const options = ['--port', '0', '--host', 'localhost', '--database', 'file:other.db']
  const overruled = { PORT: 'x', HOST: '256.0.0.1', DATABASE_URL: 'file:/dev/null' }
  const port = await portTakenForTest()

  const fine = await check({ ...overruled, LOGLEVEL: 'warn' }, ...options)
  const faults = { PORT: `${port}`, DATABASE_URL: 'file:/dev/null' }
  const faulty = await check(faults)
  // A script writes this if its variables are not set.
  const withEmptyOptions = await check(faults, '--port', '', '--database', '')

  expect(fine).toEqual({
    code: 0,
    stdout: `The settings are fine. A start would create a new store at ${resolve(place.folder, 'other.db')}.\n`,
    stderr: 'LOGLEVEL is not a setting: did you mean LOG_LEVEL?\n',
  })
  expect(faulty).toEqual({
    code: 1,
    stdout: '',
    stderr: `plant-store: cannot listen on PORT: address already in use 127.0.0.1:${port}\nplant-store: DATABASE_URL: the store /dev/null cannot be opened: /dev/null is not a file\n`,
  })
  expect(withEmptyOptions).toEqual(faulty)
  expect(readdirSync(place.folder)).toEqual([])
})

test('serve takes options with values alone, and the version is the package', () =>
  place.session(`
    $ serve 8080
    ! plant-store: too many arguments…
    [2]
    $ serve --port
    ! plant-store: …argument missing (see --help)
    [2]
    $ --version
    ${manifest.version}`))

/** Runs a script whose `"$@"` starts the program. */
function runInShell(script: string, ...args: readonly string[]) {
  const command = ['-c', script, 'sh', process.execPath, commandProgram, ...args]
  return spawnSync('/bin/sh', command, {
    cwd: place.folder,
    env: { DATABASE_URL: place.url },
    encoding: 'utf8',
  })
}

test('an export fails if its file takes only a part of the last write', async () => {
  await place.createStore(20)

  // One block is 512 or 1,024 bytes, and a plant takes more than 100.
  const { status, stderr } = runInShell('ulimit -f 1; exec "$@" > plants', 'export')

  expect(status).toBe(1)
  expect(stderr).toMatch(/^plant-store: the output could not be written: .*\n$/)
})

test('a reader that leaves ends an export without a word', async () => {
  await place.createStore(2_000)
  const { process: program, result } = place.start('export')

  program.stdout?.once('data', () => program.stdout?.destroy())

  expect(await result).toMatchObject({ code: 141, stderr: '' })
})

test.runIf(process.platform === 'linux')(
  'a command works from a deleted folder, but by full paths alone',
  () => {
    const file = place.path('plants.ndjson')
    writeFileSync(file, '{"id":100,"name":"a"}\n')
    const run = (args: readonly string[], setting = '') => {
      mkdirSync(place.path('deleted'))
      return runInShell(`cd deleted && rmdir "$PWD" && ${setting} exec "$@"`, ...args)
    }

    const imported = run(['import', file])
    const relative = run(['backup', 'store.backup'])
    const ofRelativeStore = run(['restore', file], 'DATABASE_URL=file:store.db')

    expect(imported.status, imported.stderr).toBe(0)
    const refusal = {
      status: 1,
      stderr: expect.stringMatching(/: the working folder was deleted: [^\n]+\n$/),
    }
    expect([relative, ofRelativeStore]).toMatchObject([refusal, refusal])
  },
)
