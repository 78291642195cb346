import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { until } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { mintSecret, type WebhookId } from '@plant-store/webhooks'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Place } from './place.ts'

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

/** A plant as short as can be: `1 name tag`. */
async function stored(): Promise<string[]> {
  const plants = await place.plants()
  return plants.map(({ id, name, tag }) =>
    JSON.stringify([`${id}`, name, ...(tag === undefined ? [] : [tag])]),
  )
}
function rejects(name: string): { line: number; reason: string; raw?: string; rawBase64?: string }[] {
  const lines = readFileSync(place.path(name), 'utf8').trimEnd().split('\n')
  return lines.map(line => JSON.parse(line))
}
async function imported(content: string | Buffer, ...options: string[]) {
  const { code, stdout, stderr } = await place.run(['import', '-', '--json', ...options], content)
  if (stderr !== '') throw new Error(stderr)
  const { seconds: _, ...result } = JSON.parse(stdout)
  return { code, ...result }
}
/** Whether a process listens to SIGHUP, the lowest bit in what Linux says of its signals. */
function catchesHangUp(pid: number | undefined): boolean {
  const [, mask = ''] = /^SigCgt:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return (Number.parseInt(mask.slice(-1), 16) & 1) === 1
}
const lines = (from: number, count: number) =>
  Array.from(
    { length: count },
    (_, n) => `{"id":${from + n},"name":"plant ${from + n}","tag":"${n % 7}"}\n`,
  ).join('')

describe('NDJSON', () => {
  test('is taken as POST /plants takes it, exactly', async () => {
    const content = [
      '{"id":9223372036854775807,"name":"last","tag":""}',
      '  {"tag":"t", "name":"\\u00e9\\n", "id":-9223372036854775808, "other":[{"id":1}]}  ',
      '',
      '   ',
      '{"id":11.0,"name":""}\r',
      '{"id":9007199254740993,"name":"🌱"}',
    ].join('\n')
    expect(await imported(content)).toEqual({
      ...{ code: 0, read: 4, inserted: 4, replaced: 0, alreadyThere: 0, rejected: 0 },
      ...{ rejects: null, interrupted: false },
    })
    expect(await stored()).toEqual([
      '["-9223372036854775808","é\\n","t"]',
      '["11",""]',
      '["9007199254740993","🌱"]',
      '["9223372036854775807","last",""]',
    ])
  })

  test('has each bad line told with its number, its reason and itself, and the others kept', async () => {
    const content = Buffer.concat([
      Buffer.from('\ufeff{"id":1,"name":"first"}\n\n'),
      Buffer.from('{"id":2,"name":"twice","name":"twice"}\nno json\n{"id":"3","tag":4}\n'),
      Buffer.from([...Buffer.from('{"id":5,"name":"'), 0xff, ...Buffer.from('"}\n')]),
      Buffer.from('{"id":6,"name":"\\ud800"}\n{"id":7,"name":"\\u0000"}\n{"id":1,"name":"again"}\n'),
      Buffer.from(`{"id":8,"name":"${'x'.repeat(5000)}"}\n{"id":9223372036854775808,"name":"big"}\n`),
      Buffer.from('[1]\n{"id":9,"name":"é"}\n{"id":10,"name":"cut'),
    ])
    const result = await imported(content, '--rejects', 'bad.ndjson', '--line-limit', '4096')
    expect(result).toMatchObject({ code: 3, read: 13, inserted: 2, rejected: 11, rejects: 'bad.ndjson' })
    expect(await stored()).toEqual(['["1","first"]', '["9","é"]'])
    const found = rejects('bad.ndjson')
    expect(found.map(({ line, reason }) => `${line} ${reason}`)).toEqual([
      expect.stringMatching(/^3 Duplicate member "name" at position /),
      expect.stringMatching(/^4 Unexpected token/),
      '5 id must be an integer from -9223372036854775808 to 9223372036854775807; name is required; tag must be a string',
      '6 the line is not UTF-8',
      '7 name must be Unicode text without lone surrogates',
      '8 name must not contain U+0000',
      '9 id 1 is already taken',
      '10 the line is longer than 4096 bytes, of which these are the first',
      '11 id must be an integer from -9223372036854775808 to 9223372036854775807',
      '12 plant must be an object',
      expect.stringMatching(/^14 Unterminated string/),
    ])
    expect(found[1]).toEqual({ line: 4, reason: expect.any(String), raw: 'no json' })
    expect(Buffer.from(found[3]?.rawBase64 as string, 'base64').includes(0xff)).toBe(true)
    expect(found[6]?.raw).toBe('{"id":1,"name":"again"}')
    expect(found[7]?.raw).toBe(`{"id":8,"name":"${'x'.repeat(1024 - 16)}`)
    expect(found[10]?.raw).toBe('{"id":10,"name":"cut')
  })

  test('may have lines that are longer than any piece that is read at once', async () => {
    const long = JSON.stringify({ id: 2, name: 'é'.repeat(2_000_000) })
    const tooLong = JSON.stringify({ id: 3, name: 'y'.repeat(20_000_000) })
    writeFileSync(
      place.path('plants'),
      `{"id":1,"name":"a"}\n${long}\n${tooLong}\n{"id":4,"name":"b"}\n${tooLong}`,
    )
    const { code, stdout } = await place.run('import plants')
    expect({ code, stdout }).toEqual({
      code: 3,
      stdout: expect.stringMatching(
        /^3 plants imported in \d+s \([\d,]+\/s\); 2 lines rejected, see plants.rejects.ndjson\n$/,
      ),
    })
    expect(rejects('plants.rejects.ndjson').map(({ line }) => line)).toEqual([3, 5])
    expect((await stored())[1]).toHaveLength(JSON.stringify(['2', 'é'.repeat(2_000_000)]).length)
  })
})

describe('CSV', () => {
  test('distinguishes no tag from an empty one, and quotes from none', async () => {
    const content = 'name,tag,id\n"a, ""b""\nc",,1\nplain,"",2\n,"t\r\nu",3\n"","say ""x""",-4\r\n" é ",x,+5'
    expect(await imported(content, '--rejects', 'r')).toMatchObject({ code: 3, inserted: 4, rejected: 1 })
    expect(await stored()).toEqual([
      '["-4","","say \\"x\\""]',
      '["1","a, \\"b\\"\\nc"]',
      '["2","plain",""]',
      '["3","","t\\r\\nu"]',
    ])
    expect(rejects('r')).toEqual([
      {
        line: 8,
        raw: '" é ",x,+5',
        reason: 'id must be an integer from -9223372036854775808 to 9223372036854775807',
      },
    ])
  })

  test('may come without tags, with a byte order mark, with CRLF, with blank lines, and told by its name', async () => {
    const content = '\ufeffid,name\r\n1,one\r\n\r\n2,"two"\r\n'
    expect(await imported(content, '--format', 'csv')).toMatchObject({ code: 0, read: 2, inserted: 2 })
    expect(await stored()).toEqual(['["1","one"]', '["2","two"]'])
  })

  test('with a quote that is never closed loses nothing that follows, however much it is', async () => {
    const rest = Array.from({ length: 60_000 }, (_, n) => `${n},plant ${n},tag\n`).join('')
    const options = ['--rejects', 'r', '--line-limit', '100000']
    expect(await imported(`id,name,tag\n-1,"open,tag\n${rest}`, ...options)).toMatchObject({
      code: 3,
      inserted: 60_000,
      rejected: 1,
    })
    expect(rejects('r')).toEqual([
      {
        line: 2,
        raw: '-1,"open,tag',
        reason: 'the record is longer than 100000 bytes, or a quote is never closed',
      },
    ])
  })
})

describe('what gzip compressed', () => {
  const csv = 'id,name\n1,one\n2,two\n'

  test('is read, whether it is a file or the standard input, NDJSON or CSV', async () => {
    expect(await imported(gzipSync(csv))).toMatchObject({ code: 0, inserted: 2 })
    // gzip joins files by writing one behind the other.
    writeFileSync(
      place.path('plants.gz'),
      Buffer.concat([gzipSync(`\ufeff${lines(10, 40_000)}`), gzipSync(lines(40_010, 1))]),
    )
    const { code, stdout } = await place.run('import plants.gz --json')
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, inserted: 40_001 })
  })

  test.each([
    [gzipSync(csv).subarray(0, -12), /^plant-store: cut.gz: unexpected end of file/],
    [gzipSync(csv).fill(0x5a, 12), /^plant-store: cut.gz: /],
  ])('and was damaged since fails in one line (%#)', async (content, message) => {
    writeFileSync(place.path('cut.gz'), content)
    await place.fails('import cut.gz', 1, message)
  })
})

describe('an import', () => {
  test('announces what it imports, unless it is told not to', async () => {
    await using storage = await openStorage({ url: place.url })
    const webhook = { id: 'w' as WebhookId, url: 'https://a.example/', allowsPrivate: false }
    await storage.webhooks.add({ ...webhook, createdAt: new Date() }, mintSecret())
    await imported('{"id":1,"name":"n"}\n')
    await imported('{"id":2,"name":"n"}\n', '--no-announce')
    const deliveries = await storage.outbox.deliveriesOf(webhook.id, 10)
    expect(deliveries.map(({ added }) => added.plant.id)).toEqual([1n])
  })

  test('of nothing is none', async () => {
    expect(await imported('')).toMatchObject({ code: 0, read: 0 })
    expect(await imported(' \n\n')).toMatchObject({ code: 0, read: 0 })
    expect(await imported('id,name\n')).toMatchObject({ code: 0, read: 0 })
  })

  test('rejects taken ids, or replaces them, whether they are in the store or in the file', async () => {
    await imported(lines(0, 10))
    const content = `${lines(8, 4)}{"id":11,"name":"last"}\n`
    expect(await imported(content)).toMatchObject({ code: 3, inserted: 2, rejected: 3 })
    expect(rejects('plant-store.rejects.ndjson').map(({ line }) => line)).toEqual([1, 2, 5])
    expect(await imported(content, '--replace')).toMatchObject({
      code: 0,
      replaced: 5,
      inserted: 0,
      rejected: 0,
    })
    expect((await stored()).at(-1)).toBe('["11","last"]')
  })

  test('of what is already there rejects only what differs', async () => {
    await imported(lines(0, 10))
    const changed = `${lines(0, 12)}{"id":3,"name":"other"}\n`
    const { stdout } = await place.run('import -', changed)
    expect(stdout).toMatch(/^2 plants imported in \d+s \(\d+\/s\), 10 already stored; 1 line rejected, see /)
    expect(rejects('plant-store.rejects.ndjson')).toMatchObject([
      { line: 13, reason: 'id 3 is already taken' },
    ])
  })

  test('that is dry judges every line, and stores nothing', async () => {
    const content = `${lines(0, 30_000)}{"id":1,"name":"another"}\nno json\n`
    expect(await place.run('import - --dry-run', content)).toEqual({
      code: 3,
      stdout: '30,001 valid plants; 1 line rejected, see plant-store.rejects.ndjson; nothing was stored\n',
      stderr: '',
    })
    expect(rejects('plant-store.rejects.ndjson')).toMatchObject([{ line: 30_002, raw: 'no json' }])
    expect(await imported(content, '--dry-run')).toMatchObject({ code: 3, read: 30_002, inserted: 0 })
    expect(existsSync(place.store)).toBe(false)
  })

  test('that is interrupted keeps what it counts, and can be run again', async () => {
    const input = new PassThrough()
    const { process: program, result } = place.start('import - --json', input)
    input.write(lines(0, 50_000))
    await until(
      '20,000 plants',
      async () => existsSync(place.store) && (await place.count().catch(() => 0)) >= 20_000,
    )
    program.kill('SIGINT')
    const { code, stdout, stderr } = await result
    input.destroy()
    expect(code).toBe(130)
    expect(stderr).toBe('{"error":"interrupted: the plants counted above are stored"}\n')
    const { inserted, interrupted } = JSON.parse(stdout)
    expect(interrupted).toBe(true)
    expect(await place.count()).toBe(inserted)
    expect(await imported(lines(0, 50_000))).toMatchObject({
      code: 0,
      inserted: 50_000 - inserted,
      alreadyThere: inserted,
      rejected: 0,
    })
    expect(await place.count()).toBe(50_000)
  })

  test('that is interrupted before anything came says so', async () => {
    const input = new PassThrough()
    const { process: program, result } = place.start('import -', input)
    await until('the import to listen', () => catchesHangUp(program.pid))
    program.kill('SIGHUP')
    expect(await result).toEqual({ code: 130, stdout: '', stderr: 'plant-store: interrupted\n' })
    input.destroy()
    expect(existsSync(place.store)).toBe(false)
  })

  test('that is killed leaves a sound store, and can be run again', async () => {
    const input = new PassThrough()
    const { process: program, result } = place.start('import -', input)
    input.write(lines(0, 50_000))
    await until(
      '20,000 plants',
      async () => existsSync(place.store) && (await place.count().catch(() => 0)) >= 20_000,
    )
    program.kill('SIGKILL')
    await result
    input.destroy()
    expect((await place.run('check')).code).toBe(0)
    expect(await imported(lines(0, 50_000), '--replace')).toMatchObject({ code: 0, read: 50_000 })
    expect(await place.count()).toBe(50_000)
  })

  test('goes on beside a server that writes', async () => {
    const server = await place.serve()
    const running = place.start('import - --json', lines(0, 60_000))
    let ended = false
    running.result.finally(() => {
      ended = true
    })
    let created = 0
    while (!ended) {
      expect(await server.create(1_000_000 + created)).toBe(200)
      created++
    }
    expect(JSON.parse((await running.result).stdout)).toMatchObject({ inserted: 60_000 })
    await server.end()
    expect(await place.count()).toBe(60_000 + created)
  })

  test('takes a limit of 1 KiB to 256 MiB for a line', async () => {
    const codes: Record<string, number | null> = {}
    for (const limit of ['1024', '268435456', '1023', '268435457', '2e3', '1024.5'])
      codes[limit] = (await place.run(`import - --line-limit ${limit}`)).code
    expect(codes).toEqual({ 1024: 0, 268435456: 0, 1023: 2, 268435457: 2, '2e3': 2, '1024.5': 2 })
  })

  test.each([
    ['import', 2, /missing required argument/],
    ['import missing.csv', 1, /^plant-store: missing.csv: no such file or folder\n$/],
    ['import .', 1, /^plant-store: \.: it is a folder\n$/],
    ['import - --format xml', 2, /Allowed choices are ndjson, csv/],
    ['import plants --rejects ./plants', 2, /is the file to import/],
    ['import - --rejects -', 2, /^plant-store: - is the file to import/],
    ['import array', 1, /must have one JSON object on each line, not a JSON array/],
    ['import utf16', 1, /: the first line is not UTF-8 \(nothing was imported\)/],
    [
      'import bad --rejects no/such/folder',
      1,
      /^plant-store: no\/such\/folder: no such file or folder \(the lines before line 3 were imported\)\n$/,
    ],
  ])('%s fails in one line, with no store changed', async (args, exitCode, message) => {
    writeFileSync(place.path('plants'), '{"id":1,"name":"a"}\n')
    writeFileSync(place.path('bad'), 'id,name\nx,a\n')
    writeFileSync(place.path('array'), '[{"id":1,"name":"a"}]')
    writeFileSync(place.path('utf16'), Buffer.from('\ufeffid,name\n', 'utf16le'))
    await place.fails(args, exitCode, message)
    if (existsSync(place.store)) expect(await place.count()).toBe(0)
  })
})
