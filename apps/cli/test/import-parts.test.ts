import { execFileSync } from 'node:child_process'
import { linkSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { parsePlant } from '@plant-store/domain'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { inBatches } from '../src/commands/import-batches.ts'
import { ImportCounts } from '../src/commands/import-counts.ts'
import { openInput } from '../src/files/input-file.ts'
import { isSameFile } from '../src/files/output-file.ts'
import { createRejectsFile } from '../src/files/rejects-file.ts'
import type { Entry } from '../src/formats/lines.ts'

// The parts of an import that need no process.

describe('a file to read', () => {
  const mark = Buffer.from([0xef, 0xbb, 0xbf])
  const long = Buffer.from('é'.repeat(300_000))

  test.each([
    ['nothing', Buffer.of(), Buffer.of()],
    ['one byte, as gzip begins', Buffer.of(0x1f), Buffer.of(0x1f)],
    ['part of a byte order mark', mark.subarray(0, 2), mark.subarray(0, 2)],
    ['a byte order mark alone', mark, Buffer.of()],
    ['a text', Buffer.from('{}'), Buffer.from('{}')],
    ['two byte order marks', Buffer.concat([mark, mark]), mark],
    ['a long text', Buffer.concat([mark, long]), long],
    ['gzip', gzipSync(Buffer.concat([mark, long])), long],
    ['gzip of nothing', gzipSync(''), Buffer.of()],
  ])('with %s is read decompressed, without a byte order mark', async (_, content, expected) => {
    const path = join(temporaryFolder(), 'file')
    writeFileSync(path, content)
    const { beginning, chunks, bytes, bytesRead } = await openInput(path)
    expect(bytes).toBe(content.length)
    expect(beginning.equals(expected.subarray(0, beginning.length))).toBe(true)
    expect(beginning.length).toBeGreaterThanOrEqual(Math.min(expected.length, 4_000))
    expect((await buffer(chunks)).equals(expected)).toBe(true)
    expect(bytesRead()).toBe(content.length)
  })

  test('that is cut, missing or a folder is told by its name', async () => {
    const folder = temporaryFolder()
    const cut = join(folder, 'cut')
    writeFileSync(cut, gzipSync(long).subarray(0, -20))
    await expect(openInput(cut).then(({ chunks }) => buffer(chunks))).rejects.toThrow(`${cut}: `)
    await expect(openInput(join(folder, 'none'))).rejects.toThrow('none: no such file or folder')
    await expect(openInput(folder)).rejects.toThrow(`${folder}: it is a folder`)
  })

  test('may be a pipe that is removed as soon as it is open', async () => {
    const path = join(temporaryFolder(), 'pipe')
    execFileSync('mkfifo', [path])
    const opening = openInput(path)
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
  for (const name of ['a', 'b']) writeFileSync(path(name), '')
  linkSync(path('a'), path('hard-link'))
  symlinkSync('a', path('link'))
  symlinkSync(folder, path('folder'))
  const others = ['a', 'hard-link', 'link', 'folder/a', './a', 'b', 'none']
  expect(others.filter(name => isSameFile(path('a'), `${folder}/${name}`))).toEqual(others.slice(0, 5))
  expect(isSameFile(path('none'), path('folder/none'))).toBe(true)
  expect(isSameFile(path('none'), path('nothing'))).toBe(false)
  expect(isSameFile(path('none/file'), path('none/file'))).toBe(true)
})

test('rejected lines replace an earlier file, and those of the next batch follow them', () => {
  const path = join(temporaryFolder(), 'rejects')
  writeFileSync(path, 'of an earlier import')
  const write = createRejectsFile(path)
  write([])
  expect(readFileSync(path, 'utf8')).toBe('of an earlier import')
  write([
    { line: 1, raw: Buffer.from('no json'), reason: 'a' },
    { line: 2, raw: Buffer.of(0xff), reason: 'b' },
  ])
  write([{ line: 9, raw: Buffer.from('é'), reason: 'c' }])
  expect(readFileSync(path, 'utf8')).toBe(
    '{"line":1,"reason":"a","raw":"no json"}\n{"line":2,"reason":"b","rawBase64":"/w=="}\n{"line":9,"reason":"c","raw":"é"}\n',
  )
  expect(() => createRejectsFile(join(path, 'below'))([{ line: 1, raw: Buffer.of(), reason: '' }])).toThrow(
    `${path}/below: a part of the path is not a folder`,
  )
})

const plant = parsePlant({ id: 1n, name: 'a' })
const entry = (line: number, bytes = 1): Entry => ({ line, raw: Buffer.alloc(bytes, 'x'), plant })

describe('batches', () => {
  async function sizes(
    pieces: AsyncIterable<readonly Entry[]> | Iterable<readonly Entry[]>,
    signal = new AbortController().signal,
  ) {
    async function* all() {
      yield* pieces
    }
    const found: number[] = []
    for await (const batch of inBatches(all(), signal)) found.push(batch.length)
    return found
  }
  const lines = (count: number) => Array.from({ length: count }, (_, n) => entry(n))

  test('have 20,000 lines, or 16 MiB, and the last one what is left', async () => {
    expect(await sizes([lines(19_999), lines(20_002)])).toEqual([20_000, 20_000, 1])
    expect(await sizes([lines(20_000)])).toEqual([20_000, 0])
    const half = entry(1, 8 * 1024 * 1024)
    expect(await sizes([[half, half, half, entry(2), half, entry(3)]])).toEqual([2, 3, 1])
    expect(await sizes([[entry(1, 16 * 1024 * 1024 - 1), entry(2), entry(3)]])).toEqual([2, 1])
  })

  test('end with what was read before an interruption, and with any other error', async () => {
    async function* failing() {
      yield lines(3)
      throw new Error('broken')
    }
    await expect(sizes(failing())).rejects.toThrow('broken')
    expect(await sizes(failing(), AbortSignal.abort())).toEqual([3])
  })
})

test('an import counts what became of its lines, and says what it rejected and why', () => {
  const counts = new ImportCounts()
  const unreadable = { line: 2, raw: Buffer.from('no json'), reason: 'not JSON' }
  const batch = [entry(1), unreadable, entry(3), entry(4), entry(5), entry(6)]
  const rejected = [unreadable, { line: 3, raw: Buffer.from('x'), reason: 'id 1 is already taken' }]
  const outcomes = ['inserted', 'id-taken', 'replaced', 'already-there', 'inserted'] as const
  expect(counts.add(batch, outcomes)).toEqual(rejected)
  expect(counts.summary('r', 1)).toBe(
    '3 plants imported in 1s (3/s), 1 of them replacing others, 1 already stored; 2 lines rejected, see r',
  )
  counts.add([entry(7), entry(8)], ['replaced', 'replaced'])
  expect({ ...counts }).toEqual({ read: 8, inserted: 2, replaced: 3, alreadyThere: 1, rejected: 2 })
  expect(counts.verdict('r')).toBe('6 valid plants; 2 lines rejected, see r; nothing was stored')
  expect(new ImportCounts().summary('r', 1)).toBe('0 plants imported in 1s (0/s)')
})
