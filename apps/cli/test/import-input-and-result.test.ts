import { execFileSync } from 'node:child_process'
import {
  linkSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { parsePlant } from '@plant-store/domain'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { ImportResult } from '../src/commands/import-result.ts'
import { inParts } from '../src/commands/read-lines.ts'
import { openInput } from '../src/files/input-file.ts'
import { isSameFile } from '../src/files/output-file.ts'
import { formats } from '../src/formats/formats.ts'
import { type Entry, lineFeed, plantReading } from '../src/formats/lines.ts'

// The parts of an import that need no process.

const { signal } = new AbortController()

/** Returns a text in UTF-16 with the high byte first. */
const swapped = (text: string) => Buffer.from(text, 'utf16le').swap16()

describe('a file to read', () => {
  const mark = Buffer.from([0xef, 0xbb, 0xbf])
  const long = Buffer.from('é'.repeat(300_000))

  test.each([
    ['nothing', Buffer.of(), Buffer.of()],
    ['one byte, as gzip begins', Buffer.of(0x1f), Buffer.of(0x1f)],
    ['part of a byte order mark', mark.subarray(0, 2), mark.subarray(0, 2)],
    ['a byte order mark alone', mark, Buffer.of()],
    ['a text', Buffer.from('{}'), Buffer.from('{}')],
    [
      'two byte order marks',
      Buffer.concat([mark, mark, mark.subarray(0, 1)]),
      mark.subarray(0, 1),
    ],
    ['UTF-16', Buffer.from('{"é🌱"}', 'utf16le'), Buffer.from('{"é🌱"}')],
    ['UTF-16 with a mark', Buffer.from('\ufeffé🌱', 'utf16le'), Buffer.from('é🌱')],
    ['UTF-16 in the other order', swapped('{"é🌱"}'), Buffer.from('{"é🌱"}')],
    ['UTF-16 in the other order with a mark', swapped('\ufeffé'), Buffer.from('é')],
    ['gzip of UTF-16', gzipSync(Buffer.from('\ufeffé', 'utf16le')), Buffer.from('é')],
    ['a long text', Buffer.concat([mark, long]), long],
    ['gzip', gzipSync(Buffer.concat([mark, long])), long],
    ['gzip of nothing', gzipSync(''), Buffer.of()],
    ['one gzip behind another', Buffer.concat([gzipSync(mark), gzipSync(long)]), long],
  ])(
    'with %s is read decompressed, without a byte order mark',
    async (_, content, expected) => {
      const path = join(temporaryFolder(), 'file')
      writeFileSync(path, content)
      const { beginning, chunks, bytes, bytesRead } = await openInput(path, signal)
      expect(bytes).toBe(content.length)
      const start = expected.subarray(0, beginning.length)
      expect(beginning.equals(start), `${beginning.subarray(0, 50)}`).toBe(true)
      expect(beginning.length).toBeGreaterThanOrEqual(Math.min(expected.length, 4_000))
      const all = await buffer(chunks)
      expect(all.equals(expected), `${all.subarray(0, 50)}`).toBe(true)
      expect(bytesRead()).toBe(content.length)
    },
  )

  test('that is cut, missing or a folder is told by its name', async () => {
    const folder = temporaryFolder()
    const cut = join(folder, 'cut')
    writeFileSync(cut, gzipSync(long).subarray(0, -20))
    const reading = openInput(cut, signal).then(({ chunks }) => buffer(chunks))
    await expect(reading).rejects.toThrow(`${cut}: unexpected end of file`)
    await expect(openInput(join(folder, 'none'), signal)).rejects.toThrow(
      'none: no such file or folder',
    )
    await expect(openInput(folder, signal)).rejects.toThrow(`${folder}: it is a folder`)
  })

  test.each([
    ['half a character', Buffer.from('\ufeffab', 'utf16le').subarray(0, -1)],
    ['a lone surrogate', Buffer.from('\ufeffa\ud800b', 'utf16le')],
  ])('that has %s of UTF-16 is refused', async (_, content) => {
    const path = join(temporaryFolder(), 'file')
    writeFileSync(path, content)

    const reading = openInput(path, signal).then(({ chunks }) => buffer(chunks))

    await expect(reading).rejects.toThrow(`${path}: it is not valid UTF-16`)
  })

  test('may be a pipe that is removed as soon as it is open', async () => {
    const path = join(temporaryFolder(), 'pipe')
    execFileSync('mkfifo', [path])
    const opening = openInput(path, signal)
    const writer = await open(path, 'w')
    rmSync(path)
    await writer.writeFile('content')
    await writer.close()
    const { chunks, bytes } = await opening
    expect(`${await buffer(chunks)}`).toBe('content')
    expect(bytes).toBe(0)
  })

  test('is left with the reason of the signal', async () => {
    const path = join(temporaryFolder(), 'file')
    writeFileSync(path, Buffer.alloc(1_000_000))
    const controller = new AbortController()
    const { chunks } = await openInput(path, controller.signal)
    controller.abort(new Error('enough'))
    await expect(buffer(chunks)).rejects.toThrow(/^enough$/)
  })
})

test('two paths are one file, or two', () => {
  const folder = temporaryFolder()
  const path = (name: string) => join(folder, name)
  for (const name of ['a', 'b']) {
    writeFileSync(path(name), '')
  }
  linkSync(path('a'), path('hard-link'))
  symlinkSync('a', path('link'))
  symlinkSync(folder, path('folder'))
  for (const name of ['a', 'hard-link', 'link', 'folder/a', './a']) {
    expect(isSameFile(path('a'), `${folder}/${name}`), name).toBe(true)
  }
  for (const name of ['b', 'none']) {
    expect(isSameFile(path('a'), `${folder}/${name}`), name).toBe(false)
  }
  expect(isSameFile(path('none'), path('folder/none'))).toBe(true)
  expect(isSameFile(path('none'), path('nothing'))).toBe(false)
  expect(isSameFile(path('none/file'), path('none/file'))).toBe(true)
})

const plant = parsePlant({ id: 1n, name: 'a' })
const entry = (line: number, bytes = 1): Entry => ({
  line,
  raw: Buffer.alloc(bytes, 'x'),
  item: plant,
})

describe('parts', () => {
  async function sizes(
    pieces: AsyncIterable<readonly Entry[]> | Iterable<readonly Entry[]>,
    abort = signal,
  ) {
    async function* all() {
      yield* pieces
    }
    const found: number[] = []
    for await (const part of inParts(all(), abort)) {
      found.push(part.length)
    }
    return found
  }
  const lines = (count: number): Entry[] => Array(count).fill(entry(1))
  const partBytesMax = 16 * 1024 * 1024
  const half = entry(1, partBytesMax / 2)
  const allButOneByte = entry(1, partBytesMax - 1)

  test.each([
    {
      what: '10,000 lines',
      pieces: [lines(9_999), lines(10_002)],
      parts: [10_000, 10_000, 1],
    },
    { what: 'nothing at the end', pieces: [lines(10_000)], parts: [10_000, 0] },
    {
      what: '16 MiB',
      pieces: [[half, half, half, entry(2), half, entry(3)]],
      parts: [2, 3, 1],
    },
    {
      what: '16 MiB exactly',
      pieces: [[allButOneByte, entry(2), entry(3)]],
      parts: [2, 1],
    },
  ])('have at most $what', async ({ pieces, parts }) => {
    expect(await sizes(pieces)).toEqual(parts)
  })

  test('end at an interruption with what was read, and fail at errors', async () => {
    async function* failing() {
      yield lines(3)
      throw new Error('broken')
    }
    await expect(sizes(failing())).rejects.toThrow('broken')
    expect(await sizes(failing(), AbortSignal.abort())).toEqual([3])
  })
})

const reader = formats.ndjson.createReader({
  ...plantReading,
  lineBytesMax: 1_000,
  lineEnd: lineFeed,
})

test('an import counts its lines, and keeps the rejected with reasons', () => {
  const path = join(temporaryFolder(), 'rejects')
  writeFileSync(path, 'of an earlier import')
  using result = new ImportResult(path, reader)
  const add = (...[part, outcomes]: Parameters<ImportResult['count']>) => {
    result.count(part, outcomes)
    result.writeRejects(part, outcomes)
  }
  add([entry(1)], ['inserted'])
  const contentBefore = readFileSync(path, 'utf8')
  const unreadable = { line: 3, raw: Buffer.of(0xff), reason: 'not JSON' }
  const entries = [entry(2), unreadable, entry(4), entry(5), entry(6)]

  add(entries, ['id-taken', 'replaced', 'existing', 'inserted'])
  add([{ line: 7, raw: Buffer.from('é'), reason: 'c' }, entry(8)], ['replaced'])

  expect(contentBefore).toBe('of an earlier import')
  expect(readFileSync(path, 'utf8').split('\n')).toEqual([
    '{"line":2,"reason":"id 1 is already taken","raw":"x"}',
    '{"line":3,"reason":"not JSON","rawBase64":"/w=="}',
    '{"line":7,"reason":"c","raw":"é"}',
    '',
  ])
  const counted = { read: 8, inserted: 2, replaced: 2, alreadyThere: 1, rejected: 3 }
  expect(result.counts).toEqual(counted)
  expect(result.describeImported(2)).toBe(
    `4 plants imported in 2s (2/s), 2 of them replacing others, 1 already stored; 3 lines rejected, see ${path}`,
  )
  expect(result.describeJudged()).toBe(
    `5 valid plants; 3 lines rejected, see ${path}; nothing was stored`,
  )
})

test.each([
  {
    what: 'below a file',
    name: 'file/rejects',
    reason: 'a part of the path is not a folder',
  },
  { what: 'in no folder', name: 'none/rejects', reason: 'no such file or folder' },
  { what: 'that is a folder', name: '', reason: 'it is not a file' },
])('a file for rejects $what is refused at the start', ({ name, reason }) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'file'), '')
  const path = join(folder, name)

  const start = () => new ImportResult(path, reader)

  expect(start).toThrow(
    `${path}: ${reason} (--rejects names the file for rejected lines)`,
  )
  expect(readdirSync(folder)).toEqual(['file'])
})

test('a file for rejects that is not needed is not made', () => {
  const folder = temporaryFolder()

  using result = new ImportResult(join(folder, 'rejects'), reader)
  result.writeRejects([entry(1)], ['inserted'])

  expect(readdirSync(folder)).toEqual([])
})
