import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { type Plant, parsePlant } from '@plant-store/domain'
import { openReader, openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Place } from './place.ts'

let place: Place
beforeEach(async () => {
  place = new Place()
  await place.createStore()
})
afterEach(() => place[Symbol.asyncDispose]())

async function save(plant: Plant): Promise<void> {
  await using storage = await openStorage({ url: place.url })
  await storage.plants.save(plant)
}

/** Runs a command whose standard output refuses every write. */
function runUnwritable(args: string, errorCode = 'ENOSPC', input = '') {
  return place.run(args, input, { stdout: { errorCode } })
}

describe('a command whose output cannot be written', () => {
  const refusal = {
    code: 1,
    stdout: '',
    stderr: 'plant-store: the output could not be written: the disk is full\n',
  }

  test.each([
    'token list',
    'webhook list',
    'check',
    'export --format csv',
    'backup plants.backup',
    '--help',
    'help token',
    '--version',
  ])('%s exits with 1 and one line', async args => {
    const result = await runUnwritable(args)

    expect(result).toEqual(refusal)
  })

  test('a result in JSON is missing with an error in JSON', async () => {
    const { code, stderr } = await runUnwritable('check --json')

    expect(code).toBe(1)
    expect(stderr).toBe('{"error":"the output could not be written: the disk is full"}\n')
  })

  test('import exits with 1, and keeps what it stored', async () => {
    const result = await runUnwritable('import -', 'ENOSPC', '{"id":1,"name":"a"}\n')

    expect(result).toEqual(refusal)
    expect(await place.count()).toBe(1)
  })

  test.each(['', ' --json'])('token create%s leaves no token', async option => {
    const result = await runUnwritable(`token create --name shop${option}`)

    expect(result).toMatchObject({ code: 1, stdout: '' })
    expect((await place.counts()).tokens).toBe(0)
  })

  test('token create leaves no token if the reader is gone', async () => {
    const result = await runUnwritable('token create --name shop', 'EPIPE')

    expect(result).toEqual({ code: 141, stdout: '', stderr: '' })
    expect((await place.counts()).tokens).toBe(0)
  })

  test('webhook add leaves no webhook', async () => {
    const result = await runUnwritable('webhook add https://shop.example/')

    expect(result).toEqual(refusal)
    expect((await place.counts()).webhooks).toBe(0)
  })

  test('webhook rotate leaves the old secret', async () => {
    const added = await place.run('webhook add https://shop.example/ --json')
    const { id, secret } = JSON.parse(added.stdout)
    await save(parsePlant({ id: 1n, name: 'a' }))

    const result = await runUnwritable(`webhook rotate ${id}`)

    expect(result).toEqual(refusal)
    await using storage = await openStorage({ url: place.url })
    const claim = await storage.webhooks.outbox.claim({
      leaseMs: 60_000,
      rowsMax: 1,
      textBytesMax: 1_000,
    })
    expect(claim).toMatchObject({ secret })
  })

  test('an error keeps its exit code if standard error cannot be written', async () => {
    const streams = { stderr: { errorCode: 'ENOSPC' } }

    const result = await place.run('token revoke x', '', streams)

    expect(result).toEqual({ code: 1, stdout: '', stderr: '' })
  })
})

describe('what a terminal would obey', () => {
  const name = '\u001b[2J\u0007\u009b2J\u202egpj 🌱'
  const escaped = '\\u001b[2J\\u0007\\u009b2J\\u202egpj 🌱'

  beforeEach(() => save(parsePlant({ id: 1n, name })))

  test('is escaped in an export to a terminal', async () => {
    const terminal = { stdout: { isTTY: true } }

    const ndjson = await place.run('export', '', terminal)
    const csv = await place.run('export --format csv', '', terminal)

    expect(ndjson.stdout).toBe(`{"id":1,"name":"${escaped}"}\n`)
    expect(csv.stdout).toBe(`id,name,tag\n1,${escaped},\n`)
  })

  test('is exact in an export to a file or a pipe', async () => {
    const { stdout } = await place.run('export --format csv')
    await place.run('export file --format csv')

    expect(stdout).toBe(`id,name,tag\n1,${name},\n`)
    expect(readFileSync(place.path('file'), 'utf8')).toBe(stdout)
  })

  test.each([
    { what: 'an unknown command', args: ['\u001b[2J'] },
    { what: 'an unknown option', args: ['check', '--\u202egpj'] },
    { what: 'an invalid value', args: ['export', '--format', '\u009b2J'] },
    { what: 'a file that does not exist', args: ['import', '\u0007'] },
  ])('is escaped in the refusal of $what', async ({ args }) => {
    const { code, stderr } = await place.run(args)

    expect(code).not.toBe(0)
    expect(stderr).toMatch(/^plant-store: .*\\u[\da-f]{4}.*\n$/)
    expect(stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u)
  })
})

test.each([
  'backup -',
  'backup --keep 3 -',
  'restore -',
  'check -',
  'import plants --rejects -',
])('%s is refused, because it takes no stream', async args => {
  writeFileSync(place.path('plants'), 'no json\n')

  await place.fails(args, 2, /Write \.\/- for a file of this name/)

  expect(readdirSync(place.folder).sort()).toEqual(['data', 'plants'])
})

test('a file may be called - if its folder is named', async () => {
  await place.load(0, 3)

  const { code } = await place.run('backup ./-')

  expect(code).toBe(0)
  await using copy = await openReader(`file:${place.path('-')}`)
  expect((await copy.counts()).plants).toBe(3)
})

describe('a link in the place of a target', () => {
  test.each([
    'backup target',
    'backup target --force',
    'export target',
    'export target --force',
    'import plants --rejects target',
  ])('is not followed by %s', async args => {
    writeFileSync(place.path('precious'), 'kept')
    writeFileSync(place.path('plants'), 'no json\n')
    symlinkSync('precious', place.path('target'))

    await place.fails(args, 1, /target:? (it )?is a link: name the file that it leads to/)

    expect(readFileSync(place.path('precious'), 'utf8')).toBe('kept')
  })
})
