import { createReadStream, statSync } from 'node:fs'
import { addAbortSignal, pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { fileError } from '../command-error.ts'

const chunkBytes = 256 * 1024
const gzipMark = Buffer.from('1f8b', 'hex')
const byteOrderMark = Buffer.from('\ufeff')

/**
 * Opens a file, decompressing gzip.
 *
 * @param from its path, or `-` for standard input
 * @returns its content without a byte order mark, with a beginning that is long enough to detect the format, and its
 *   size on disk, of which `bytesRead` are read. The size of a stream is 0.
 */
export async function openInput(from: string, signal: AbortSignal) {
  const file =
    from === '-' ? undefined : createReadStream(from, { highWaterMark: chunkBytes })
  const stream = addAbortSignal(signal, file ?? process.stdin)
  async function* content() {
    try {
      const { beginning, chunks } = await peek(stream, gzipMark.length)
      if (!startsWith(beginning, gzipMark)) {
        yield* chunks
      } else {
        yield* pipeline(chunks, createGunzip({ chunkSize: chunkBytes }), () => {})
      }
    } catch (error) {
      throw signal.aborted ? signal.reason : fileError(from, error)
    }
  }
  const start = await peek(content(), 4096, byteOrderMark)
  const stat = file && statSync(from, { throwIfNoEntry: false })
  return {
    ...start,
    bytes: stat?.isFile() ? stat.size : 0,
    bytesRead: () => file?.bytesRead ?? 0,
  }
}

/** Reads at least this number of bytes, if there are. Returns them and the whole, both without the mark. */
async function peek(source: AsyncIterable<Buffer>, bytes: number, mark?: Buffer) {
  const iterator = source[Symbol.asyncIterator]()
  let beginning: Buffer = Buffer.alloc(0)
  while (beginning.length < bytes) {
    const { done, value } = await iterator.next()
    if (done) {
      break
    }
    beginning = Buffer.concat([beginning, value])
  }
  if (mark && startsWith(beginning, mark)) {
    beginning = beginning.subarray(mark.length)
  }
  async function* chunks() {
    yield beginning
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  return { beginning, chunks: chunks() }
}

function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.subarray(0, mark.length).equals(mark)
}
