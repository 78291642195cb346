import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { plant } from '@plant-store/domain/testing'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Place } from './place.ts'

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.createStore()
})
afterEach(() => place[Symbol.asyncDispose]())

/** Runs a command whose standard output refuses every write. */
function runUnwritable(args: string, errorCode = 'ENOSPC', input = '') {
  return place.run(args, input, { stdout: { errorCode } })
}

const refusal = {
  code: 1,
  stdout: '',
  stderr: 'plant-store: the output could not be written: the disk is full\n',
}

test.each(['token list', 'export --format csv', 'help token'])(
  '%s fails in one line if its output cannot be written',
  async args => {
    const result = await runUnwritable(args)

    expect(result).toEqual(refusal)
  },
)

test('a result in JSON is missing with an error in JSON', async () => {
  const { code, stderr } = await runUnwritable('check --json')

  expect(code).toBe(1)
  expect(stderr).toBe('{"error":"the output could not be written: the disk is full"}\n')
})

test('an import that cannot say so keeps what it stored', async () => {
  const result = await runUnwritable('import -', 'ENOSPC', '{"id":1,"name":"a"}\n')

  expect(result).toEqual(refusal)
  expect(await place.counts()).toMatchObject({ plants: 1 })
})

test('what has a secret that was not printed is removed', async () => {
  const token = await runUnwritable('token create --name shop')
  const left = await runUnwritable('token create --name shop --json', 'EPIPE')
  const webhook = await runUnwritable('webhook add https://shop.example/')

  expect([token, webhook]).toEqual([refusal, refusal])
  expect(left).toEqual({ code: 141, stdout: '', stderr: '' })
  expect(await place.counts()).toMatchObject({ tokens: 0, webhooks: 0 })
})

test('a new secret of a webhook that was not printed replaces no old one', async () => {
  const added = await place.run('webhook add https://shop.example/ --json')
  const { id, secret } = JSON.parse(added.stdout)

  const result = await runUnwritable(`webhook rotate ${id}`)

  expect(result).toEqual(refusal)
  await using storage = await openStorage({ url: place.url })
  await storage.plants.insertAll([plant(1n)])
  const limits = { leaseMs: 60_000, rowsMax: 1, textBytesMax: 1_000 }
  expect(await storage.webhooks.outbox.claim(limits)).toMatchObject({ secret })
})

test('an error keeps its exit code if standard error cannot be written', async () => {
  const streams = { stderr: { errorCode: 'ENOSPC' } }

  const result = await place.run('check x', '', streams)

  expect(result).toEqual({ code: 1, stdout: '', stderr: '' })
})

test('what a terminal would obey is escaped on one, and exact in a file', async () => {
  const name = '\u001b[2J\u0007\u009b2J\u202egpj 🌱'
  await place.run('import -', `id,name\n1,${name}\n`)

  const shown = await place.run('export --format csv', '', { stdout: { isTTY: true } })
  const { stdout } = await place.run('export --format csv')

  const escaped = '\\u001b[2J\\u0007\\u009b2J\\u202egpj 🌱'
  expect(shown.stdout).toBe(`id,name,tag\n1,${escaped},\n`)
  expect(stdout).toBe(`id,name,tag\n1,${name},\n`)
})

describe('a terminal', () => {
  beforeEach(async () => {
    vi.stubEnv('TERM', 'xterm')
    writeFileSync(place.path('plants'), 'id\n1\n2\n')
    await place.createStore(2)
  })

  const runOnTerminal = (args: string) => place.run(args, '', { stderr: { isTTY: true } })

  test.each([
    ['remove plants', /█{30} +100% {2}2 plants {2}[\d,]+\/s {2}\w+ left/],
    ['export file', /█{30} +100% {2}2 plants/],
    ['backup file', /░{30} +0% {2}0 pages/],
  ])('shows how far %s has come, and then its cursor again', async (args, bar) => {
    const { stderr } = await runOnTerminal(args)

    expect(stripVTControlCharacters(stderr)).toMatch(bar)
    expect(stderr).toContain('\u001B[?25h')
  })

  test('shows no bar beside JSON, nor if it is dumb', async () => {
    const besideJson = await runOnTerminal('export file --json')
    vi.stubEnv('TERM', 'dumb')
    const dumb = await runOnTerminal('remove plants')

    expect([besideJson.stderr, dumb.stderr]).toEqual(['', ''])
  })
})

test.each([
  ['check', '--\u202egpj'],
  ['import', '\u0007'],
])('what a terminal would obey is escaped in the refusal of %j %j', async (...args) => {
  const { code, stderr } = await place.run(args)

  expect(code).not.toBe(0)
  expect(stderr).toMatch(/^plant-store: .*\\u[\da-f]{4}.*\n$/)
  expect(stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u)
})

test('a command that takes no stream refuses -, but a file may be called so', async () => {
  for (const args of ['backup -', 'backup --keep 3 -', 'restore -', 'check -']) {
    await place.session(`
      $ ${args}
      ! plant-store: …It must be a file, not a stream. Write ./- for a file of this name. (see --help)
      [2]`)
  }

  await place.session(`
    $ import plants --rejects -
    ! plant-store: …It must be a file, not a stream.…
    [2]
    $ backup ./-
    ./-: 0 plants…`)
  expect(readdirSync(place.folder)).toEqual(['-', 'data'])
})

test('no command follows a link in the place of its target', async () => {
  writeFileSync(place.path('precious'), 'kept')
  symlinkSync('precious', place.path('target'))

  for (const command of ['backup target', 'export target --force']) {
    await place.session(`
      $ ${command}
      ! plant-store: …is a link: name the file that it leads to
      [1]`)
  }

  expect(readFileSync(place.path('precious'), 'utf8')).toBe('kept')
})
