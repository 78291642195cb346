import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { freePort, launch, serverProgram, until } from '@plant-store/harness'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, onTestFinished, test } from 'vitest'
import { prettyLines } from '../src/telemetry/pretty-log.ts'
import { journalLines, openLog } from '../src/telemetry/process-log.ts'
import { connectRaw } from './ask.ts'

test('a log whose reader stalls holds up neither a request nor a stop', async () => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  await using program = launch([process.execPath, serverProgram], {
    folder: temporaryFolder(),
    environment: {
      PORT: `${port}`,
      HTTP_THREADS: '1',
      // Much longer than a stop that nothing holds up.
      SHUTDOWN_TIMEOUT: '60s',
    },
    keepsOutput: false,
  })
  await until('it serves', async () => {
    program.assertRunning()
    return (await fetch(`${url}/healthz`)).ok
  })
  using client = await connectRaw(url)
  // Their lines are more than a pipe holds.
  const requests = 500
  client.send('GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n'.repeat(requests))
  for (let number = 1; number <= requests; number++) {
    const { status } = await client.answer(undefined)
    expect(status, `of request ${number}`).toBe(200)
  }
  const exited = once(program.process, 'exit')
  program.process.kill('SIGTERM')

  expect(await exited).toEqual([0, null])
})

test('lines that cannot be written wait up to a bound, then are counted', async () => {
  // Never closed: the log tries again, and would write to the next file of this number.
  const fd = openSync('/dev/full', 'w')
  const log = await openLog({ logLevel: 'info', logFormat: 'json' }, fd)
  const line = `${'x'.repeat(1023)}\n`

  log.write(line.repeat(4096))
  const lostBefore = log.lostLines()
  log.write(line.repeat(3))
  log.logger.info('one more')

  expect([lostBefore, log.lostLines()]).toEqual([0, 4])
  expect(await log.written()).toBe(false)
})

test.each([
  ['json', /^\{"level":"warn","time":\d+,"msg":"a\\u009b\{\\"level\\":\\"info\\""\}\n$/],
  ['journal', /^<4>\{"level":"warn",.*a\\u009b.*\}\n$/],
  ['pretty', /^\[[\d:.]+\] WARN: a\\u009b\{"level":"info"\n$/],
] as const)('LOG_FORMAT chooses printable %s', async (logFormat, line) => {
  const path = join(temporaryFolder(), 'log')
  const fd = openSync(path, 'w')
  onTestFinished(() => closeSync(fd))
  const log = await openLog({ logLevel: 'info', logFormat }, fd)

  log.logger.warn('a\u009b{"level":"info"')
  log.logger.debug('b')

  expect(await log.written()).toBe(true)
  expect(stripVTControlCharacters(readFileSync(path, 'utf8'))).toMatch(line)
})

test('the journal gets the priority of each level', () => {
  const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal']

  const lines = journalLines(levels.map(level => `{"level":"${level}"}\n`).join(''))

  expect(lines.match(/^<\d>/gm)).toEqual(['<7>', '<7>', '<6>', '<4>', '<3>', '<2>'])
})

test.each([
  [
    'a request',
    {
      method: 'GET',
      route: '/plants',
      status: 401,
      ms: 1.5,
      reqId: 'a-1',
      client: '::1',
    },
    /INFO: GET \/plants 401 1\.5 ms \{"reqId":"a-1"\}\n$/,
  ],
  [
    'a request that is incomplete',
    { status: 408, ms: 0 },
    /: incomplete request 408 0 ms\n$/,
  ],
  [
    'a path without a route',
    { method: 'PUT', status: 404, ms: 0 },
    /: PUT \(no such path\)/,
  ],
])('a pretty line of %s is a sentence with other fields', (_, fields, expected) => {
  const line = JSON.stringify({ level: 'info', time: 0, ...fields, msg: 'answered' })

  expect(stripVTControlCharacters(prettyLines(`${line}\n`))).toMatch(expected)
})

/** A terminal would obey the first of these. The others separate lines. */
const hostile = 'a\u001b[2J\u009b2J\u202e\u0085\u2028{'

test.each(
  Object.entries({
    'text in a field': JSON.stringify({ level: 'info', time: 0, holder: hostile }),
    'a message': JSON.stringify({ level: 'info', time: 0, msg: hostile }),
    'a stack': JSON.stringify({ level: 'error', time: 0, err: { stack: hostile } }),
    'a line that only begins as JSON': `{${hostile}`,
    'a level that is no text': JSON.stringify({ level: {}, msg: hostile }),
    'the end of a line': `{"level":"info","time":0,"msg":"a"}${hostile}`,
  }),
)('a terminal gets every line, and obeys none: %s', (_, line) => {
  const deleted = '{"level":"info","time":0,"msg":"answered","method":"DELETE"}'

  const shown = stripVTControlCharacters(prettyLines(`${deleted}\n${line}\n${deleted}\n`))

  expect(shown).toMatch(
    /^\[[^\n]+INFO: DELETE[\s\S]*u202e[\s\S]*\n\[[^\n]+INFO: DELETE[^\n]+\n$/,
  )
  expect(shown).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u)
})
