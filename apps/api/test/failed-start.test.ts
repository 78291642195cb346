import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { type LaunchedServer, launchServer } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, onTestFinished, test } from 'vitest'

test('however few files it may open, it serves or ends with one line', {
  ...needs('ulimit', process.platform !== 'win32'),
}, async () => {
  // Another few at each run.
  const anywhere = Array.from({ length: 2 }, () => 22 + Math.floor(Math.random() * 38))
  const limits = [...new Set([16, 28, ...anywhere, 60])]
  const outcomes = new Map<number, Outcome>()
  const startNext = async () => {
    for (let limit = limits.shift(); limit !== undefined; limit = limits.shift()) {
      await using program = launchServer({
        folder: temporaryFolder(),
        environment: { ACCESS_TOKENS: 'secret' },
        filesMax: limit,
      })
      outcomes.set(limit, await outcomeOf(program))
    }
  }
  await Promise.all([startNext(), startNext()])

  expect([...outcomes].filter(([, outcome]) => outcome === 'hangs')).toEqual([])
  // With fewer, Node itself has not begun yet.
  const ours = [...outcomes].filter(([limit]) => limit >= 22)
  expect(ours.filter(([, outcome]) => outcome !== 'serves' && outcome !== 'one line')).toEqual([])
  expect(outcomes.get(28)).toBe('one line')
  expect(outcomes.get(60)).toBe('serves')
})

type Outcome = 'serves' | 'one line' | 'hangs' | string

/** What came of a start; where it serves, it has also been stopped. */
async function outcomeOf(program: LaunchedServer): Promise<Outcome> {
  const ended = program.ended.then(code =>
    code === 1 && /^plant-store: [^\n]+\n$/.test(program.errors())
      ? 'one line'
      : `${code} ${program.errors()}`,
  )
  const serves = program.logged('listening').then(
    async () => ((await program.end()) === 0 ? 'serves' : ended),
    () => ended,
  )
  return Promise.race([serves, hangs()])
}

/** Long after a start of a second, also on a busy machine. */
const hangs = () => new Promise<'hangs'>(resolve => setTimeout(() => resolve('hangs'), 30_000).unref())

test('a signal ends a start that waits for its database', async () => {
  const sockets: Socket[] = []
  const silent = createServer(socket => sockets.push(socket)).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const { port } = silent.address() as { port: number }
  await using program = launchServer({
    folder: temporaryFolder(),
    environment: {
      DATABASE_URL: `postgres://plants:secret@127.0.0.1:${port}/plants`,
      DATABASE_TIMEOUT: '600s',
      SHUTDOWN_TIMEOUT: '100ms',
    },
  })
  await once(silent, 'connection')
  expect(await program.end()).toBe(1)
  expect(program.output()).toContain('"msg":"did not stop in time"')
})
