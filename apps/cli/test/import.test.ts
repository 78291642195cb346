import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { PassThrough } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { until } from '@plant-store/harness'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { inParts } from '../src/commands/read-lines.ts'
import { Place } from './place.ts'

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

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
    Buffer.from(`${start}{"id":8,"tag":"${'x'.repeat(5_000)}"}\n`),
    Buffer.of(0xff, 0x0a),
    Buffer.from('{"id":9,"name":"é"}\n'),
  ])
  writeFileSync(place.path('plants.gz'), gzipSync(content))
  writeFileSync(place.path('plants.gz.rejects.ndjson'), 'of an earlier import')

  await place.session(`
    $ import plants.gz --line-limit 4096
    2 plants imported in …s (…/s); 4 lines rejected, see plants.gz.rejects.ndjson
    [3]
    $ export
    {"id":1,"name":"first","tag":""}
    {"id":9,"name":"é"}
    ! 2 plants exported in …`)

  expect(rejects('plants.gz.rejects.ndjson')).toMatchObject([
    { line: 3, reason: expect.stringMatching(/^Unexpected token/), raw: 'no json' },
    { line: 4, reason: 'id 1 is already taken', raw: '{"id":1,"name":"again"}' },
    { line: 5, reason: expect.stringMatching(/^the line is longer than 4096 bytes/) },
    { line: 6, reason: 'the line is not UTF-8', rawBase64: '/w==' },
  ])
})

test('an import counts what it replaced and found, and makes no rejects', async () => {
  await place.session(`
    $ import -
    < id,name
    0 plants imported in 0s (0/s): none is in standard input
    $ import -
    < {"id":0,"name":"a"}
    < {"id":1,"name":"b"}
    2 plants imported in …s (…/s)
    $ import -
    < {"id":1,"name":"b"}
    < {"id":3,"name":"c"}
    1 plant imported in …s (…/s), 1 already stored
    $ import - --replace
    < {"id":0,"name":"b"}
    < {"id":7,"name":"c"}
    2 plants imported in …s (…/s), 1 of them replacing others`)

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

test('an import that is dry judges every line, and stores nothing', async () => {
  await place.session(`
    $ import - --dry-run --rejects r
    < sep=;
    < id;name
    < 1;Mint
    < 1;Oak
    < x
    2 valid plants; 1 line rejected, see r; nothing was stored
    [3]`)

  // An import takes this file as it is.
  expect(readFileSync(place.path('r'), 'utf8')).toMatch(
    /^sep=;\nline;reason;id;name\n5;"id must be .*";x\n$/,
  )
  expect(existsSync(place.store)).toBe(false)
})

test('an interrupted import keeps what it counts, and can be run again', async () => {
  const input = new PassThrough()
  const running = place.run('import - --json', input)
  input.write(lines(10_001))
  await until(
    '10,000 plants',
    async () => existsSync(place.store) && (await place.counts()).plants === 10_000,
  )
  process.emit('SIGINT')
  const { code, stdout, stderr } = await running
  expect(code).toBe(130)
  expect(stderr).toBe('{"error":"interrupted: the plants counted above are stored"}\n')
  const { inserted, interrupted } = JSON.parse(stdout)
  expect(interrupted).toBe(true)
  const again = await place.run('import - --json', lines(10_001))
  const rest = { inserted: 10_001 - inserted, alreadyThere: inserted, rejected: 0 }
  expect(JSON.parse(again.stdout)).toMatchObject(rest)
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
  const codes: (number | null)[] = []
  for (const limit of ['1KiB', '268435456', '1023', '257MiB']) {
    const { code } = await place.run(`import - --dry-run --line-limit ${limit}`)
    codes.push(code)
  }

  expect(codes).toEqual([0, 0, 2, 2])
})

test('an import that cannot begin fails in one line, and changes nothing', async () => {
  writeFileSync(place.path('plants'), '{"id":1,"name":"a"}\n')
  writeFileSync(place.path('latin'), Buffer.from('id,name,\xe9\n', 'latin1'))
  mkdirSync(place.path('folder'))
  symlinkSync('latin', place.path('link'))
  const namesBefore = readdirSync(place.folder)
  const advice = '(--rejects names the file for rejected lines)'

  await place.session(`
    $ import
    ! plant-store: missing required argument 'file' (see --help)
    [2]
    $ import missing.csv
    ! plant-store: missing.csv: no such file or folder
    [1]
    $ import .
    ! plant-store: .: it is a folder
    [1]
    $ import - --format xml
    ! plant-store: …Allowed choices are ndjson, csv. (see --help)
    [2]
    $ import latin --dry-run
    ! plant-store: the header is not UTF-8 (nothing was imported)
    [1]
    $ import plants --rejects ./plants
    ! plant-store: ./plants is the file to import: name another file with --rejects
    [2]
    $ import plants --rejects data/store.db
    ! plant-store: data/store.db is the store itself
    [1]
    $ import plants --rejects no/a
    ! plant-store: no/a: no such file or folder ${advice}
    [1]
    $ import plants --rejects latin/a
    ! plant-store: latin/a: a part of the path is not a folder ${advice}
    [1]
    $ import plants --rejects folder
    ! plant-store: folder: it is not a file ${advice}
    [1]
    $ import plants --rejects link
    ! plant-store: link: it is a link: name the file that it leads to ${advice}
    [1]`)

  expect(readdirSync(place.folder)).toEqual(namesBefore)
})

test('lines are stored in parts of at most 10,000 lines, or 16 MiB', async () => {
  const line = (bytes: number) => ({ line: 1, raw: Buffer.alloc(bytes), reason: 'none' })
  const half = line(8 * 1024 * 1024)
  async function* pieces() {
    yield Array(9_999).fill(line(1))
    yield [line(1), half, line(1), half, line(1)]
  }

  const sizes: number[] = []
  for await (const part of inParts(pieces(), new AbortController().signal)) {
    sizes.push(part.length)
  }

  expect(sizes).toEqual([10_000, 3, 1])
})
