import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import {
  isInstalled,
  type LaunchedServer,
  launchServer,
  listenLocally,
  startServer,
} from '@plant-store/harness'
import { needs, portTakenForTest, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../src/config.ts'
import { findPort } from '../src/http/listening.ts'
import { ask } from './ask.ts'

const run = promisify(execFile)

test('a wrong configuration ends it with 1 and a line for each variable', async () => {
  const folder = temporaryFolder()
  await using program = launchServer({
    folder,
    environment: {
      BASE_URL: 'example.org',
      ACCESS_TOKENS: 'se cret',
      LOG_FORMAT: 'journal',
      LOG_LEVEL: 'loud',
    },
  })

  expect(await program.ended).toBe(1)
  expect(
    program
      .errors()
      .match(/^\S+ \S+/gm)
      ?.sort(),
  ).toEqual([
    '<3>plant-store: ACCESS_TOKENS',
    '<3>plant-store: BASE_URL',
    '<3>plant-store: LOG_LEVEL',
  ])
  expect(program.errors()).not.toContain('se cret')
  expect(program.output()).toBe('')
  expect(readdirSync(folder)).toEqual([])
})

const hasTerminals = isInstalled('script') && isInstalled('curl')

/** Sends what Ctrl-C at its terminal sends. */
function interrupt({ process, ended }: LaunchedServer): Promise<number | string> {
  process.stdin.write('\x03')
  return ended
}

test(
  'only the first start on a terminal shows a token, which no file has',
  needs('script and curl', hasTerminals),
  async () => {
    const folder = temporaryFolder()
    const onTerminal = { onTerminal: true, folder }
    const taken = { PORT: `${await portTakenForTest()}` }
    await using failed = launchServer({ ...onTerminal, environment: taken })
    expect(await failed.ended).toBe(1)
    expect(failed.output()).toMatch(
      /^plant-store: [^\n]*address already in use 127\.0\.0\.1:\d+\r\n$/,
    )

    const environment = { LOG_FORMAT: '', BASE_URL: 'https://plants.example.org/green' }
    await using program = launchServer({ ...onTerminal, environment })
    await expect.poll(program.output).toContain('plant-store token create')
    const shown = () => stripVTControlCharacters(program.output())
    expect(shown()).toMatch(
      / INFO: serving \/\S+\/data\/plant-store\.db on \S+, look into it at \S+\r\n[\s\S]*This is the first access token/,
    )
    const [, page = ''] = / look into it at (\S+)/.exec(shown()) ?? []
    const [, token = ''] = /^ {2}(plantstore_\S+)\r$/m.exec(shown()) ?? []
    const [, command = ''] = /^ {2}(curl .*?)\r$/m.exec(shown()) ?? []
    expect((await fetch(page)).status).toBe(200)
    expect(page).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/green\/browse$/)
    expect(command).toContain(token)
    const created = await run('sh', ['-c', command])
    expect(created.stdout).toBe('{"name":"Monstera","tag":"climber"}')
    // An interrupt makes the terminal drop what nobody has read yet.
    await expect
      .poll(shown)
      .toMatch(
        /INFO: POST \/green\/plants 200 [\d.]+ ms \{.*"token":"first","plantId":"1"\}\r$/m,
      )
    expect(await interrupt(program)).toBe(0)
    expect(shown()).toMatch(/^(?:\^C)?\[[\d:.]+\] INFO: stopped\r$/m)

    await using next = await startServer({ ...onTerminal, environment: {} })
    const listed = await ask(next, 'GET /plants', { token })
    expect(listed.text).toBe('[{"id":1,"name":"Monstera","tag":"climber"}]')
    expect(await interrupt(next)).toBe(0)
    expect(next.output()).not.toMatch(/access token|plantstore_/)
    expect(readdirSync(join(folder, 'data'))).toEqual(['plant-store.db'])
    const kept = readFileSync(join(folder, 'data/plant-store.db'), 'latin1')
    expect(kept).toContain('Monstera')
    expect(kept).not.toContain(token.slice('plantstore_'.length))
  },
)

test('a server cannot listen on an address of nobody, in one line', async () => {
  // TEST-NET-1 (RFC 5737).
  const finding = findPort(readConfig({ HOST: '192.0.2.1' }))

  await expect(finding).rejects.toThrow(
    /^HOST must be a name or an address of this machine: .+$/,
  )
})

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
