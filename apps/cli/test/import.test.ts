import { existsSync, linkSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { until } from '@plant-store/harness'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
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
  const { seconds: _, ...result } = JSON.parse(stdout)
  return { code, ...result }
}

function rejects(name: string): unknown[] {
  const lines = readFileSync(place.path(name), 'utf8').trimEnd().split('\n')
  return lines.map(line => JSON.parse(line))
}

const lines = (count: number) =>
  Array.from(
    { length: count },
    (_, n) => `{"id":${n},"name":"plant ${n}","tag":"${n % 7}"}\n`,
  ).join('')

describe('an import', () => {
  test('keeps each bad line with its number and reason, and imports the rest', async () => {
    const content = [
      '\ufeff{"id":1,"name":"first","tag":""}\r\n\nno json\n{"id":1,"name":"again"}\n',
      `{"id":8,"name":"${'x'.repeat(5_000)}"}\n{"id":9,"name":"é"}\n{"id":10,"name":"cut`,
    ].join('')
    writeFileSync(place.path('plants.gz'), gzipSync(content))
    const result = await place.run('import plants.gz --line-limit 4096')
    const summary =
      /^2 plants imported in \ds \(\d+\/s\); 4 lines rejected, see plants.gz.rejects.ndjson\n$/
    expect(result).toMatchObject({ code: 3, stdout: expect.stringMatching(summary) })
    expect(await place.plants()).toEqual([
      { id: 1n, name: 'first', tag: '' },
      { id: 9n, name: 'é' },
    ])
    expect(rejects('plants.gz.rejects.ndjson')).toEqual([
      { line: 3, reason: expect.stringMatching(/^Unexpected token/), raw: 'no json' },
      { line: 4, reason: 'id 1 is already taken', raw: '{"id":1,"name":"again"}' },
      {
        line: 5,
        reason: expect.stringMatching(/^the line is longer than 4096 bytes/),
        raw: expect.any(String),
      },
      {
        line: 7,
        reason: expect.stringMatching(/^Unterminated string/),
        raw: '{"id":10,"name":"cut',
      },
    ])
  })

  test('writes no rejects through a link', async () => {
    writeFileSync(place.path('precious'), 'kept')
    writeFileSync(place.path('plants'), 'no json\n')
    symlinkSync('precious', place.path('plants.rejects.ndjson'))
    const refusal =
      /^plant-store: plants.rejects.ndjson: it is a link: name the file that it leads to \(--rejects names the file for rejected lines\)\n$/
    await place.fails('import plants --format ndjson', 1, refusal)
    expect(existsSync(place.store)).toBe(false)

    const input = new PassThrough()
    const running = place.run('import - --rejects late', input)
    input.write(lines(1_000))
    await until('the store', () => existsSync(place.store))
    symlinkSync('precious', place.path('late'))
    input.end('no json\n')
    expect(await running).toMatchObject({ code: 3, stderr: '' })
    expect(rejects('late')).toMatchObject([{ line: 1_001, raw: 'no json' }])

    linkSync(place.path('precious'), place.path('second-name'))
    const again = await imported(
      'no json\n',
      '--format',
      'ndjson',
      '--rejects',
      'second-name',
    )
    expect(again).toMatchObject({ code: 3 })
    expect(rejects('second-name')).toMatchObject([{ line: 1, raw: 'no json' }])
    expect(readFileSync(place.path('precious'), 'utf8')).toBe('kept')
  })

  test('writes no rejects over the store or its WAL', async () => {
    writeFileSync(place.path('plants'), 'no json\n')
    await place.load(0, 1)
    for (const suffix of ['', '-wal']) {
      await place.fails(
        ['import', 'plants', '--rejects', `data/store.db${suffix}`],
        1,
        /is the store itself/,
      )
    }
    expect(await place.count()).toBe(1)
  })

  test('without plants says that the file has none', async () => {
    for (const content of ['', ' \n\n', 'id,name\n']) {
      const result = await place.run('import -', content)

      expect(result, JSON.stringify(content)).toMatchObject({
        code: 0,
        stdout: '0 plants imported in 0s (0/s): none is in standard input\n',
      })
    }
  })

  test('takes its own rejects of CSV, once they are corrected', async () => {
    const content = Buffer.from(
      '\ufeffsep=;\r\nname;id\r\nMint;1\r\nOak;x\r\n',
      'utf16le',
    )
    writeFileSync(place.path('plants.csv'), content)
    const first = await place.run('import plants.csv')
    const rejects = readFileSync(place.path('plants.csv.rejects.csv'), 'utf8')
    writeFileSync(place.path('plants.csv.rejects.csv'), rejects.replace(';x', ';2'))

    const second = await place.run('import plants.csv.rejects.csv')

    expect(first.code).toBe(3)
    expect(second).toMatchObject({ code: 0, stderr: '' })
    expect(await place.plants()).toEqual([
      { id: 1n, name: 'Mint' },
      { id: 2n, name: 'Oak' },
    ])
  })

  test('that is dry judges every line, and stores nothing', async () => {
    const content = `${lines(10)}{"id":1,"name":"another"}\nno json\n`
    const counts = { read: 12, inserted: 0, rejected: 1 }
    expect(await imported(content, '--dry-run', '--rejects', 'r')).toMatchObject({
      code: 3,
      ...counts,
    })
    expect(rejects('r')).toMatchObject([{ line: 12, raw: 'no json' }])
    expect(existsSync(place.store)).toBe(false)
  })

  test('that is interrupted keeps what it counts, and can be run again', async () => {
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

  test('that is interrupted before anything came says so', async () => {
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

  test('takes a limit of 1 KiB to 256 MiB for a line', async () => {
    const codes: Record<string, number | null> = {}
    for (const limit of ['1024', '268435456', '1023', '268435457', '2e3', '1024.5']) {
      codes[limit] = (await place.run(`import - --dry-run --line-limit ${limit}`)).code
    }
    expect(codes).toEqual({
      1024: 0,
      268435456: 0,
      1023: 2,
      268435457: 2,
      '2e3': 2,
      '1024.5': 2,
    })
  })

  test.each([
    ['import', 2, /missing required argument/],
    ['import missing.csv', 1, /^plant-store: missing.csv: no such file or folder\n$/],
    ['import .', 1, /^plant-store: \.: it is a folder\n$/],
    ['import - --format xml', 2, /Allowed choices are ndjson, csv/],
    ['import plants --rejects ./plants', 2, /is the file to import/],
    ['import array', 1, /must have one JSON object on each line, not a JSON array/],
    ['import latin', 1, /: the header is not UTF-8 \(nothing was imported\)/],
    ['import pretty', 1, /not an object on several lines: convert it with jq -c '\.'/],
    ['import no/folder/plants', 1, /^plant-store: no\/folder\/plants: no such file or/],
    [
      'import bad --rejects no/such/folder',
      1,
      /^plant-store: no\/such\/folder: no such file or folder \(--rejects names the file for rejected lines\)\n$/,
    ],
  ])('%s fails in one line, with no store changed', async (args, exitCode, message) => {
    writeFileSync(place.path('plants'), '{"id":1,"name":"a"}\n')
    writeFileSync(place.path('bad'), 'id,name\nx,a\n')
    writeFileSync(place.path('array'), '[{"id":1,"name":"a"}]')
    writeFileSync(place.path('pretty'), '{\n  "id": 1,\n  "name": "a"\n}\n')
    writeFileSync(place.path('latin'), Buffer.from('id,name,\xe9\n', 'latin1'))
    await place.fails(args, exitCode, message)
    const storedCount = existsSync(place.store) ? await place.count() : 0
    expect(storedCount).toBe(0)
  })
})
