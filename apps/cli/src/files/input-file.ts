import { createReadStream, statSync } from 'node:fs'
import { addAbortSignal, pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { fileFailure } from '../failure.ts'

export interface Input {
  /** Long enough to detect the format. */
  readonly beginning: Buffer
  /** The whole content, decompressed, without a byte order mark. */
  readonly chunks: AsyncIterable<Buffer>
  /** The size on disk, of which `bytesRead` are read. 0 for a stream. */
  readonly bytes: number
  bytesRead(): number
}

const chunkBytes = 256 * 1024
const beginningBytes = 4096

/**
 * Opens a file, decompressing gzip.
 *
 * @param from its path, or `-` for standard input
 */
export async function openInput(from: string, signal?: AbortSignal): Promise<Input> {
  const file = from === '-' ? undefined : createReadStream(from, { highWaterMark: chunkBytes })
  const stream = file ?? process.stdin
  if (signal) addAbortSignal(signal, stream)
  async function* content() {
    try {
      yield* decompressed(stream)
    } catch (error) {
      throw signal?.aborted ? signal.reason : fileFailure(from, error)
    }
  }
  const { beginning, rest } = await peek(content(), beginningBytes)
  const text = beginning.subarray(startsWith(beginning, byteOrderMark) ? byteOrderMark.length : 0)
  const stat = file && statSync(from, { throwIfNoEntry: false })
  return {
    beginning: text,
    chunks: joined(text, rest),
    bytes: stat?.isFile() ? stat.size : 0,
    bytesRead: () => file?.bytesRead ?? 0,
  }
}

const gzipMark = Buffer.from('1f8b', 'hex')
const byteOrderMark = Buffer.from('\ufeff')

async function* decompressed(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const { beginning, rest } = await peek(source, gzipMark.length)
  const chunks = joined(beginning, rest)
  if (!startsWith(beginning, gzipMark)) yield* chunks
  else yield* pipeline(chunks, createGunzip({ chunkSize: chunkBytes }), () => {})
}

function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.subarray(0, mark.length).equals(mark)
}

async function peek(source: AsyncIterable<Buffer>, bytes: number) {
  const iterator = source[Symbol.asyncIterator]()
  let beginning: Buffer = Buffer.alloc(0)
  while (beginning.length < bytes) {
    const { done, value } = await iterator.next()
    if (done) break
    beginning = Buffer.concat([beginning, value])
  }
  return { beginning, rest: { [Symbol.asyncIterator]: () => iterator } }
}

async function* joined(beginning: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield beginning
  yield* rest
}
