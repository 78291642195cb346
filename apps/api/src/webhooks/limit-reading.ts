import type { ClientRequest } from 'node:http'

/**
 * The limits of an answer to one delivery, of which only the status and some
 * header fields are used. Without these limits, ten listeners that send interim answers
 * without end, or a byte every millisecond, keep the main thread busy. With them, such an
 * answer costs it up to 30 ms.
 */
export const answerLimits = {
  /** The header section, interim answers and the body together. */
  bytesMax: 64 * 1024,
  /** How many pieces may arrive before the status is known. */
  headPiecesMax: 64,
  /** How many pieces may arrive after it. */
  bodyPiecesMax: 8,
  /** How long the body may take. It delays the next delivery. */
  bodyTimeoutMs: 1_000,
}

/**
 * Counts what arrives for a request. If it exceeds the limits, the request is ended.
 *
 * @param onExcess is called before that
 */
export function limitReading(request: ClientRequest, onExcess: () => void): void {
  let bytes = 0
  let piecesLeft = answerLimits.headPiecesMax

  const end = (reason: string) => {
    onExcess()
    request.destroy(new Error(reason))
  }
  const onData = (piece: Buffer) => {
    bytes += piece.length
    piecesLeft--
    if (bytes > answerLimits.bytesMax) {
      end(`the answer is longer than ${answerLimits.bytesMax} bytes`)
    } else if (piecesLeft < 0) {
      end('the answer arrives in too many pieces')
    }
  }
  request.on('socket', socket => {
    socket.on('data', onData)
    // The agent keeps the socket for another request.
    request.on('close', () => socket.off('data', onData))
  })
  request.on('response', () => {
    piecesLeft = answerLimits.bodyPiecesMax
    const late = setTimeout(end, answerLimits.bodyTimeoutMs, 'the answer does not end')
    request.once('close', () => clearTimeout(late))
  })
}
