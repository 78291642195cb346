import { createReadStream, type ReadStream, statSync } from 'node:fs'
import { addAbortSignal, pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { CommandError, fileError } from '../command-error.ts'

const chunkBytes = 256 * 1024
const gzipMark = Buffer.from('1f8b', 'hex')
const byteOrderMark = Buffer.from('\ufeff')
/** Long enough to detect the format. */
const beginningBytes = 4096

/** The content of a file, in UTF-8 and without a byte order mark. */
export interface Input {
  readonly beginning: Buffer
  /** The whole content, with its beginning. */
  readonly chunks: AsyncIterable<Buffer>
  /** The size of the file on disk. 0 if it is a stream. */
  readonly bytes: number
  /** Returns how much of the file on disk has been read. */
  bytesRead(): number
}

/**
 * Opens a file, decompresses gzip and decodes UTF-16.
 *
 * @param from its path, or `-` for standard input
 */
export async function openInput(from: string, signal: AbortSignal): Promise<Input> {
  const file = from === '-' ? undefined : openFile(from)
  const stream = addAbortSignal(signal, file ?? process.stdin)

  async function* content() {
    try {
      yield* withoutMarks(decoded(decompressed(stream), from))
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof CommandError) {
        throw error
      }
      throw fileError(from, error)
    }
  }

  const start = await peek(content(), beginningBytes)
  return {
    ...start,
    bytes: file === undefined ? 0 : sizeOf(from),
    bytesRead: () => file?.bytesRead ?? 0,
  }
}

function openFile(path: string): ReadStream {
  return createReadStream(path, { highWaterMark: chunkBytes })
}

/**
 * Returns 0 for what is not a file, such as a pipe. It may have been removed already.
 */
function sizeOf(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat?.isFile()) {
    return 0
  }
  return stat.size
}

async function* decompressed(source: AsyncIterable<Buffer>) {
  const { beginning, chunks } = await peek(source, gzipMark.length)
  if (startsWith(beginning, gzipMark)) {
    yield* pipeline(chunks, createGunzip({ chunkSize: chunkBytes }), () => {})
  } else {
    yield* chunks
  }
}

async function* decoded(source: AsyncIterable<Buffer>, from: string) {
  const { beginning, chunks } = await peek(source, 4)
  const encoding = utf16In(beginning)
  if (encoding === undefined) {
    yield* chunks
    return
  }
  const decoder = new TextDecoder(encoding, { fatal: true })
  const decode = (chunk?: Buffer) => {
    try {
      return Buffer.from(decoder.decode(chunk, { stream: chunk !== undefined }))
    } catch {
      throw new CommandError(`${from}: it is not valid UTF-16`)
    }
  }
  for await (const chunk of chunks) {
    yield decode(chunk)
  }
  yield decode()
}

/**
 * Returns the encoding of a text that begins with a mark, or with two characters of
 * ASCII.
 */
function utf16In(beginning: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  const [first, second, third, fourth] = beginning
  if (first === 0xff && second === 0xfe) {
    return 'utf-16le'
  }
  if (first === 0xfe && second === 0xff) {
    return 'utf-16be'
  }
  if (first !== 0 && second === 0 && third !== 0 && fourth === 0) {
    return 'utf-16le'
  }
  if (first === 0 && second !== 0 && third === 0 && fourth !== 0) {
    return 'utf-16be'
  }
  return undefined
}

/** Leaves out the byte order marks at the beginning. Some programs add a second one. */
async function* withoutMarks(source: AsyncIterable<Buffer>) {
  const iterator = source[Symbol.asyncIterator]()
  let beginning: Buffer = Buffer.alloc(0)
  // The bytes may be the start of a mark, or none are left after one.
  while (startsWith(byteOrderMark, beginning)) {
    const { done, value } = await iterator.next()
    if (done) {
      break
    }
    beginning = Buffer.concat([beginning, value])
    while (startsWith(beginning, byteOrderMark)) {
      beginning = beginning.subarray(byteOrderMark.length)
    }
  }
  yield beginning
  yield* restOf(iterator)
}

/**
 * Reads the beginning: at least this number of bytes, if there are. Returns it, and the
 * chunks of the whole.
 */
async function peek(source: AsyncIterable<Buffer>, bytes: number) {
  const iterator = source[Symbol.asyncIterator]()
  let beginning: Buffer = Buffer.alloc(0)
  while (beginning.length < bytes) {
    const { done, value } = await iterator.next()
    if (done) {
      break
    }
    beginning = Buffer.concat([beginning, value])
  }
  async function* chunks() {
    yield beginning
    yield* restOf(iterator)
  }
  return { beginning, chunks: chunks() }
}

function restOf(iterator: AsyncIterator<Buffer>): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => iterator }
}

function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.subarray(0, mark.length).equals(mark)
}
