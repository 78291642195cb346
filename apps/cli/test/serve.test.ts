import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { launchServer, startServer, temporaryFolder } from '@plant-store/harness'
import { commandProgram, runCommand } from '@plant-store/harness/command'
import { expect, test } from 'vitest'

const command = [process.execPath, commandProgram, 'serve'] as const

test('serve answers requests on the store that the other commands work on, until a signal', async () => {
  using place = temporaryFolder()
  const folder = place.path
  const { code, stdout } = await runCommand(['token', 'create', '--name', 'shop'], { folder })
  expect(code).toBe(0)
  await using server = await startServer({ command, folder })
  const authorization = `Bearer ${stdout.trim()}`
  const answer = await fetch(`${server.url}/plants`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: '{"id": 9007199254740993, "name": "Monstera"}',
  })
  expect([answer.status, await answer.text()]).toEqual([200, '{"name":"Monstera"}'])
  expect((await fetch(`${server.url}/docs/swagger-ui.css`)).status).toBe(200)
  expect((await runCommand(['export'], { folder })).stdout).toBe(
    '{"id":9007199254740993,"name":"Monstera"}\n',
  )
  expect(await server.end()).toBe(0)
  expect(server.errors()).toBe('')
})

test('serve ends with 1 and a line for each wrong variable', async () => {
  using place = temporaryFolder()
  const environment = { LOG_LEVEL: 'loud', MAX_CONNECTIONS: '0' }
  await using server = launchServer({ command, folder: place.path, environment })
  expect(await server.ended).toBe(1)
  expect(server.output()).toBe('')
  expect(server.errors()).toMatch(/^plant-store: LOG_LEVEL .+\nplant-store: MAX_CONNECTIONS .+\n$/)
})

test('serve --check says what a start would, and changes nothing', async () => {
  using place = temporaryFolder()
  const folder = place.path
  const check = (environment = {}) => runCommand(['serve', '--check'], { folder, environment })
  const fine = { code: 0, stdout: 'The settings and the store are fine.\n', stderr: '' }
  expect(await check()).toEqual(fine)
  expect(await check({ LOGLEVEL: 'warn' })).toEqual({
    ...fine,
    stderr: 'LOGLEVEL is no setting: is LOG_LEVEL meant?\n',
  })
  expect(readdirSync(folder)).toEqual([])
  expect(await check({ LOG_LEVEL: 'loud', PORT: 'x' })).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^plant-store: PORT must .* LOG_LEVEL must .*\n$/),
  })
  writeFileSync(join(folder, 'none.db'), 'no database'.repeat(1_000))
  expect(await check({ DATABASE_URL: 'file:none.db' })).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^plant-store: the store .*none\.db cannot be opened: /),
  })
})

test('serve takes no arguments', async () => {
  const { code, stderr } = await runCommand(['serve', '8080'])
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^plant-store: too many arguments/)])
})
