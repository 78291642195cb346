import {
  existsSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { PassThrough } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { until } from '@plant-store/harness'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { inParts } from '../src/commands/read-lines.ts'
import { Place } from './place.ts'

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

async function imported(content: string, ...options: string[]) {
  const args = ['import', '-', '--json', ...options]
  const { code, stdout, stderr } = await place.run(args, content)
  expect(stderr).toBe('')
  return { code, ...JSON.parse(stdout) }
}

function rejects(name: string): unknown[] {
  const lines = readFileSync(place.path(name), 'utf8').trimEnd().split('\n')
  return lines.map(line => JSON.parse(line))
}

const lines = (count: number) =>
  Array.from({ length: count }, (_, n) => `{"id":${n},"name":"plant"}\n`).join('')

test('an import keeps each bad line with its reason, and imports the rest', async () => {
  const start =
    '\ufeff{"id":1,"name":"first","tag":""}\r\n\nno json\n{"id":1,"name":"again"}\n'
  const content = Buffer.concat([
    Buffer.from(`${start}{"id":8,"name":"${'x'.repeat(5_000)}"}\n`),
    Buffer.of(0xff, 0x0a),
    Buffer.from('{"id":9,"name":"é"}\n'),
  ])
  writeFileSync(place.path('plants.gz'), gzipSync(content))
  writeFileSync(place.path('plants.gz.rejects.ndjson'), 'of an earlier import')

  const { code, stdout } = await place.run('import plants.gz --line-limit 4096')

  expect(code).toBe(3)
  expect(stdout).toMatch(
    /^2 plants imported in \ds \(\d+\/s\); 4 lines rejected, see plants.gz.rejects.ndjson\n$/,
  )
  expect(await place.plants()).toEqual([
    { id: 1n, name: 'first', tag: '' },
    { id: 9n, name: 'é' },
  ])
  expect(rejects('plants.gz.rejects.ndjson')).toMatchObject([
    { line: 3, reason: expect.stringMatching(/^Unexpected token/), raw: 'no json' },
    { line: 4, reason: 'id 1 is already taken', raw: '{"id":1,"name":"again"}' },
    { line: 5, reason: expect.stringMatching(/^the line is longer than 4096 bytes/) },
    { line: 6, reason: 'the line is not UTF-8', rawBase64: '/w==' },
  ])
})

test('an import takes its own rejects of CSV, once they are corrected', async () => {
  writeFileSync(place.path('a'), 'sep=;\nname;id\nMint;1\nOak;x\n')
  const first = await place.run('import a')
  const rejected = readFileSync(place.path('a.rejects.csv'), 'utf8')
  writeFileSync(place.path('a.rejects.csv'), rejected.replace(';x', ';2'))

  const second = await place.run('import a.rejects.csv')

  expect(first.code).toBe(3)
  expect(second).toMatchObject({ code: 0, stderr: '' })
  expect(await place.count()).toBe(2)
})

test('an import counts what it replaced and what was there, and makes no rejects', async () => {
  await imported(lines(3))
  const changed = '{"id":0,"name":"plant"}\n{"id":1,"name":"b"}\n{"id":7,"name":"c"}\n'

  const again = await place.run('import -', `${lines(3)}{"id":3,"name":"a"}\n`)
  const replacing = await place.run('import - --replace', changed)

  expect(again.stdout).toMatch(/^1 plant imported in \S+ \(\S+\), 3 already stored\n$/)
  expect(replacing.stdout).toMatch(
    /^3 plants imported in \S+ \(\S+\), 2 of them replacing others\n$/,
  )
  expect(readdirSync(place.folder)).toEqual(['data'])
})

test('an import writes no rejects through a link', async () => {
  writeFileSync(place.path('precious'), 'kept')
  const input = new PassThrough()
  const running = place.run('import - --rejects late', input)
  input.write(lines(1_000))
  await until('the store', () => existsSync(place.store))
  symlinkSync('precious', place.path('late'))
  input.end('no json\n')
  expect(await running).toMatchObject({ code: 3, stderr: '' })
  expect(rejects('late')).toMatchObject([{ line: 1_001, raw: 'no json' }])

  expect(readFileSync(place.path('precious'), 'utf8')).toBe('kept')
})

test('an import without plants says that the file has none', async () => {
  const { code, stdout } = await place.run('import -', 'id,name\n')

  expect(code).toBe(0)
  expect(stdout).toBe('0 plants imported in 0s (0/s): none is in standard input\n')
})

test('an import that is dry judges every line, and stores nothing', async () => {
  const content = `${lines(10)}{"id":1,"name":"another"}\nno json\n`

  const { code, stdout } = await place.run('import - --dry-run --rejects r', content)

  expect(code).toBe(3)
  expect(stdout).toBe('11 valid plants; 1 line rejected, see r; nothing was stored\n')
  expect(rejects('r')).toMatchObject([{ line: 12, raw: 'no json' }])
  expect(existsSync(place.store)).toBe(false)
})

test('an import that is interrupted keeps what it counts, and can be run again', async () => {
  const input = new PassThrough()
  const running = place.run('import - --json', input)
  input.write(lines(10_001))
  await until(
    '10,000 plants',
    async () => existsSync(place.store) && (await place.count()) === 10_000,
  )
  process.emit('SIGINT')
  const { code, stdout, stderr } = await running
  expect(code).toBe(130)
  expect(stderr).toBe('{"error":"interrupted: the plants counted above are stored"}\n')
  const { inserted, interrupted } = JSON.parse(stdout)
  expect(interrupted).toBe(true)
  expect(await place.count()).toBe(inserted)
  const rest = { inserted: 10_001 - inserted, alreadyThere: inserted, rejected: 0 }
  expect(await imported(lines(10_001))).toMatchObject({ code: 0, ...rest })
})

test('an import that is interrupted before anything came says so', async () => {
  const listeners = process.listenerCount('SIGHUP')
  const running = place.run('import -', new PassThrough())
  await until('the import to listen', () => process.listenerCount('SIGHUP') > listeners)
  process.emit('SIGHUP')
  expect(await running).toEqual({
    code: 130,
    stdout: '',
    stderr: 'plant-store: interrupted\n',
  })
  expect(existsSync(place.store)).toBe(false)
})

test('an import takes a limit of 1 KiB to 256 MiB for a line', async () => {
  const codes: Record<string, number | null> = {}
  for (const limit of ['1024', '268435456', '1023', '268435457', '2e3']) {
    codes[limit] = (await place.run(`import - --dry-run --line-limit ${limit}`)).code
  }

  const refused = { 1023: 2, 268435457: 2, '2e3': 2 }
  expect(codes).toEqual({ 1024: 0, 268435456: 0, ...refused })
})

test('an import that cannot begin fails in one line, and changes nothing', async () => {
  await place.load(0, 1)
  writeFileSync(place.path('plants'), '{"id":1,"name":"a"}\n')
  writeFileSync(place.path('latin'), Buffer.from('id,name,\xe9\n', 'latin1'))
  symlinkSync('latin', place.path('link'))
  const namesBefore = readdirSync(place.folder)
  const advice = '\\(--rejects names the file for rejected lines\\)\n$'

  for (const [args, exitCode, message] of [
    ['import', 2, 'missing required argument'],
    ['import missing.csv', 1, 'missing.csv: no such file or folder\n$'],
    ['import .', 1, '\\.: it is a folder\n$'],
    ['import - --format xml', 2, 'Allowed choices are ndjson, csv'],
    ['import latin', 1, ': the header is not UTF-8 \\(nothing was imported\\)\n$'],
    ['import plants --rejects ./plants', 2, 'is the file to import'],
    ['import plants --rejects data/store.db', 1, 'is the store itself\n$'],
    ['import plants --rejects no/a', 1, `no/a: no such file or folder ${advice}`],
    ['import plants --rejects latin/a', 1, `part of the path is not a folder ${advice}`],
    ['import plants --rejects data', 1, `data: it is not a file ${advice}`],
    ['import plants --rejects link', 1, `: it is a link: name the file .* ${advice}`],
  ] as const) {
    await place.fails(args, exitCode, new RegExp(message))
  }

  expect(await place.count()).toBe(1)
  expect(readdirSync(place.folder)).toEqual(namesBefore)
})

describe('the parts in which lines are stored', () => {
  const line = (bytes: number) => ({ line: 1, raw: Buffer.alloc(bytes), reason: 'none' })
  const half = line(8 * 1024 * 1024)
  const { signal } = new AbortController()

  async function sizes(pieces: AsyncIterable<ReturnType<typeof line>[]>, abort = signal) {
    const found: number[] = []
    for await (const part of inParts(pieces, abort)) {
      found.push(part.length)
    }
    return found
  }

  async function* pieces() {
    yield Array(9_999).fill(line(1))
    yield [line(1), half, line(1), half, line(1)]
  }

  test('have at most 10,000 lines, or 16 MiB', async () => {
    expect(await sizes(pieces())).toEqual([10_000, 3, 1])
  })
})
