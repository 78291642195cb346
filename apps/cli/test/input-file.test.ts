import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { openInput } from '../src/files/input-file.ts'

const { signal } = new AbortController()

/** Returns the path of a new file. */
function fileWith(content: Buffer): string {
  const path = join(temporaryFolder(), 'file')
  writeFileSync(path, content)
  return path
}

const mark = Buffer.from('\ufeff')
const long = Buffer.from('é'.repeat(300_000))
const utf16 = (text: string) => Buffer.from(text, 'utf16le')

test.each([
  ['nothing', Buffer.of(), Buffer.of()],
  ['one byte, as gzip begins', Buffer.of(0x1f), Buffer.of(0x1f)],
  ['a byte order mark alone', mark, Buffer.of()],
  ['marks and half a mark', Buffer.from([...mark, ...mark, 0xef]), Buffer.of(0xef)],
  ['UTF-16', utf16('{"é🌱"}'), Buffer.from('{"é🌱"}')],
  ['UTF-16 in the other order', utf16('{"é🌱"}').swap16(), Buffer.from('{"é🌱"}')],
  ['that and a mark', utf16('\ufeffé').swap16(), Buffer.from('é')],
  ['gzip of UTF-16', gzipSync(utf16('\ufeffé')), Buffer.from('é')],
  ['a mark and a long text', Buffer.concat([mark, long]), long],
  ['one gzip behind another', Buffer.concat([gzipSync(mark), gzipSync(long)]), long],
])(
  'a file with %s is read decompressed, in UTF-8 without marks',
  async (_, content, expected) => {
    const input = await openInput(fileWith(content), signal)

    const all = await buffer(input.chunks)

    const beginning = expected.subarray(0, input.beginning.length)
    expect(all.equals(expected), `${all.subarray(0, 50)}`).toBe(true)
    expect(input.beginning.equals(beginning), `${beginning.subarray(0, 50)}`).toBe(true)
    expect(beginning.length).toBeGreaterThanOrEqual(Math.min(expected.length, 4_000))
    expect([input.bytes, input.bytesRead()]).toEqual([content.length, content.length])
  },
)

test.each([
  [
    'half a character of UTF-16',
    utf16('\ufeffab').subarray(0, -1),
    'is not valid UTF-16',
  ],
  ['a lone surrogate', utf16('\ufeffa\ud800b'), 'is not valid UTF-16'],
  ['a part of gzip', gzipSync(long).subarray(0, -20), 'unexpected end of file'],
])('a file with %s is refused by its name', async (_, content, reason) => {
  const path = fileWith(content)

  const reading = openInput(path, signal).then(({ chunks }) => buffer(chunks))

  await expect(reading).rejects.toThrow(new RegExp(`^${path}: .*${reason}`))
})

test('a pipe may be removed as soon as it is open', async () => {
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
