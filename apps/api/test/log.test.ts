import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import {
  freePort,
  launch,
  type Program,
  serverProgram,
  until,
} from '@plant-store/harness'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, onTestFinished, test } from 'vitest'
import { prettyLines } from '../src/telemetry/pretty-log.ts'
import { journalLines, openLog } from '../src/telemetry/process-log.ts'
import { connectRaw, token } from './ask.ts'

/** Starts our server, whose log nobody reads here, and waits until it serves. */
async function serveUnread(redirection: string): Promise<Program & { url: string }> {
  const port = await freePort()
  const command = `exec "$0" "$@" ${redirection}`
  const program = launch(['/bin/sh', '-c', command, process.execPath, serverProgram], {
    folder: temporaryFolder(),
    environment: {
      PORT: `${port}`,
      ACCESS_TOKENS: token,
      HTTP_THREADS: '1',
      // Much longer than a stop that nothing holds up.
      SHUTDOWN_TIMEOUT: '60s',
    },
    keepsOutput: false,
  })
  const url = `http://127.0.0.1:${port}`
  await until('it serves', async () => {
    program.assertRunning()
    return (await fetch(`${url}/healthz`)).ok
  })
  return { ...program, url }
}

async function ask(url: string, count: number): Promise<void> {
  using client = await connectRaw(url)
  for (let number = 1; number <= count; number++) {
    client.send('GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n')
    const { status } = await client.answer(undefined)
    expect(status, `of request ${number}`).toBe(200)
  }
}

test('a log that was closed holds up neither a request nor a stop', async () => {
  await using server = await serveUnread('>&-')
  await ask(server.url, 100)
  const begunAt = performance.now()
  expect(await server.end()).toBe(0)
  expect(performance.now() - begunAt).toBeLessThan(20_000)
  expect(server.errors()).toBe('')
})

test('a log whose reader stalls holds up neither a request nor a stop', async () => {
  await using server = await serveUnread('')
  await ask(server.url, 600)
  const exited = once(server.process, 'exit')
  server.process.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})

test('lines that cannot be written wait up to a bound, then are counted', async () => {
  // Never closed: the log tries again, and would write to the next file of this number.
  const fd = openSync('/dev/full', 'w')
  const log = await openLog({ logLevel: 'info', logFormat: 'json' }, fd)
  const line = `${'x'.repeat(1023)}\n`
  log.write(line.repeat(4096))
  expect(log.lostLines()).toBe(0)
  log.write(line.repeat(3))
  log.logger.info('one more')
  expect(log.lostLines()).toBe(4)
  expect(await log.written()).toBe(false)
})

test('lines that could not be written are written once there is room', async () => {
  const path = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  onTestFinished(() => closeSync(fd))
  closeSync(reader)
  const log = await openLog({ logLevel: 'info', logFormat: 'json' }, fd)
  log.write('first\n')
  expect(await log.written()).toBe(false)
  const next = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  onTestFinished(() => closeSync(next))
  log.write('second\n')
  expect(await log.written()).toBe(true)
  const read = Buffer.alloc(100)
  expect(read.toString('utf8', 0, readSync(next, read))).toBe('first\nsecond\n')
})

test.each([
  ['json', /^\{"level":"warn","time":\d+,"msg":"a \{\\"level\\":\\"info\\""\}\n$/],
  ['journal', /^<4>\{"level":"warn",.*\}\n$/],
  ['pretty', /^\[[\d:.]+\] WARN: a \{"level":"info"\n$/],
] as const)('LOG_FORMAT chooses %s', async (logFormat, line) => {
  const path = join(temporaryFolder(), 'log')
  const fd = openSync(path, 'w')
  onTestFinished(() => closeSync(fd))
  const log = await openLog({ logLevel: 'info', logFormat }, fd)
  log.logger.warn('a {"level":"info"')
  log.logger.debug('b')
  expect(await log.written()).toBe(true)
  expect(stripVTControlCharacters(readFileSync(path, 'utf8'))).toMatch(line)
})

test('the journal gets the priority of each level', () => {
  const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal']
  const lines = levels.map(level => `{"level":"${level}"}\n`)
  const priorities = [7, 7, 6, 4, 3, 2]
  expect(journalLines(lines.join(''))).toBe(
    lines.map((line, n) => `<${priorities[n]}>${line}`).join(''),
  )
})

test('a start that fails ends, although its log is on a full disk', async () => {
  await using program = launch(
    ['/bin/sh', '-c', 'exec "$0" "$@" > /dev/full', process.execPath, serverProgram],
    {
      folder: temporaryFolder(),
      environment: { PORT: '0', DATABASE_URL: 'postgres://127.0.0.1:1/plants' },
    },
  )
  expect(await program.ended).toBe(1)
  expect(program.errors()).toMatch(/^plant-store: DATABASE_URL: [^\n]+\n$/)
})

test('a pretty line of a request has its id, and the refused token', () => {
  const request = {
    method: 'GET',
    route: '/plants',
    status: 401,
    ms: 1.5,
    reqId: 'a-1',
    client: '::1',
  }
  const refused = {
    token: 'flora',
    reason: 'the access token has expired',
    msg: 'answered',
  }
  const line = prettyLines(
    `${JSON.stringify({ level: 'info', time: 0, ...request, ...refused })}\n`,
  )
  const plain = stripVTControlCharacters(line)
  expect(plain).toMatch(
    /GET \/plants 401 1\.5 ms .*"reqId":"a-1".*"token":"flora".*"reason":"the access/,
  )
})

test('a readable line of a request that never arrived whole names no method', () => {
  const late = { level: 'info', time: 0, msg: 'answered', status: 408, ms: 0 }

  const line = prettyLines(`${JSON.stringify(late)}\n`)

  expect(stripVTControlCharacters(line)).toMatch(/INFO: incomplete request 408 0 ms/)
})

/** What a terminal would obey, and separators of lines. */
const hostile = 'a\u001b[2J\u009b2J\u202e\u0085\u2028{'

const hostileLines: readonly (readonly [why: string, line: string])[] = [
  ['text in a field', JSON.stringify({ level: 'info', time: 0, holder: hostile })],
  ['a message', JSON.stringify({ level: 'info', time: 0, msg: hostile })],
  ['a stack', JSON.stringify({ level: 'error', time: 0, err: { stack: hostile } })],
  ['a line that only begins as JSON', `{${hostile}`],
  ['a line that is no JSON', hostile],
  ['a level that is no text', JSON.stringify({ level: {}, msg: hostile })],
  ['the end of a line', `{"level":"info","time":0,"msg":"a"}${hostile}`],
]

test.each(hostileLines)('a terminal gets every line, and obeys none: %s', (_, line) => {
  const deleted = '{"level":"info","time":0,"msg":"answered","method":"DELETE"}'

  const shown = stripVTControlCharacters(prettyLines(`${deleted}\n${line}\n${deleted}\n`))

  expect(shown).toMatch(
    /^\[[^\n]+INFO: DELETE[\s\S]*u202e[\s\S]*\n\[[^\n]+INFO: DELETE[^\n]+\n$/,
  )
  expect(shown).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u)
})
