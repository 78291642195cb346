import { createReadStream } from 'node:fs'
import { addAbortSignal, pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { CommandError, fileError } from '../command-error.ts'
import { statOf } from './output-file.ts'

const chunkBytes = 256 * 1024
/** Long enough to detect the format. */
const beginningBytes = 4096

/** Its beginning can be read before the rest. */
type Source = AsyncIterableIterator<Buffer>

export type Input = Awaited<ReturnType<typeof openInput>>

/**
 * Opens a file, decompresses gzip and decodes UTF-16. Its content is UTF-8 without a byte
 * order mark.
 *
 * @param from its path, or `-` for standard input
 */
export async function openInput(from: string, signal: AbortSignal) {
  const file =
    from === '-' ? undefined : createReadStream(from, { highWaterMark: chunkBytes })
  const stream = addAbortSignal(signal, file ?? process.stdin)

  async function* content() {
    try {
      yield* decoded(decompressed(stream[Symbol.asyncIterator]()))
    } catch (error) {
      signal.throwIfAborted()
      // The decoder throws this, and no stream does.
      if (error instanceof TypeError) {
        throw new CommandError(`${from}: it is not valid UTF-16`)
      }
      throw fileError(from, error)
    }
  }

  const source = content()
  const beginning = await readBeginning(source, beginningBytes)
  // Some programs add a second byte order mark.
  const text = beginning.toString('latin1').replace(/^(?:\xef\xbb\xbf)+/, '')
  const start = Buffer.from(text, 'latin1')
  // A file may have been removed already.
  const stat = file && statOf(from)
  return {
    beginning: start,
    /** The whole content, with its beginning. */
    chunks: joined(start, source),
    /** The size of the file on disk. 0 if it is a stream, such as a pipe. */
    bytes: stat?.isFile() ? stat.size : 0,
    /** Returns how much of the file on disk has been read. */
    bytesRead: () => file?.bytesRead ?? 0,
  }
}

async function* decompressed(source: Source) {
  const beginning = await readBeginning(source, 2)
  const chunks = joined(beginning, source)
  if (beginning.toString('latin1', 0, 2) === '\x1f\x8b') {
    yield* pipeline(chunks, createGunzip({ chunkSize: chunkBytes }), () => {})
  } else {
    yield* chunks
  }
}

/** @throws TypeError if it begins like UTF-16, and is not valid */
async function* decoded(source: Source) {
  const beginning = await readBeginning(source, 4)
  const chunks = joined(beginning, source)
  const encoding = utf16In(beginning)
  if (encoding === undefined) {
    yield* chunks
    return
  }
  const decoder = new TextDecoder(encoding, { fatal: true })
  for await (const chunk of chunks) {
    yield Buffer.from(decoder.decode(chunk, { stream: true }))
  }
  yield Buffer.from(decoder.decode())
}

/**
 * Returns the encoding of a text that begins with a mark, or with two characters of
 * ASCII.
 */
function utf16In(beginning: Buffer) {
  const start = beginning.toString('latin1', 0, 4)
  if (/^(?:\xff\xfe|[^\0]\0[^\0]\0)/.test(start)) {
    return 'utf-16le'
  }
  if (/^(?:\xfe\xff|\0[^\0]\0[^\0])/.test(start)) {
    return 'utf-16be'
  }
  return
}

/** Reads at least this number of bytes, if there are, and leaves the rest. */
async function readBeginning(source: Source, bytes: number) {
  let beginning: Buffer = Buffer.alloc(0)
  while (beginning.length < bytes) {
    const { done, value } = await source.next()
    if (done) {
      break
    }
    beginning = Buffer.concat([beginning, value])
  }
  return beginning
}

async function* joined(beginning: Buffer, rest: Source) {
  yield beginning
  yield* rest
}
