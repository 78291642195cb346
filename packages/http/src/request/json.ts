import { isUtf8 } from 'node:buffer'
import { parseJsonRecord } from '@plant-store/json'
import { RequestError } from '../errors/error-numbers.ts'

/**
 * @param request with the bytes of its body
 * @throws RequestError `bad-json`
 */
export function readJsonBody({ body }: { readonly body: Buffer | undefined }): unknown {
  if (body === undefined || body.length === 0) {
    throw new RequestError('bad-json', 'the request has no body')
  }
  return readJson(body, 'body')
}

/**
 * Reads JSON, and ignores a byte order mark in front of it (RFC 8259, 8.1).
 *
 * @throws RequestError `bad-json`
 */
export function readJson(bytes: Buffer, what: 'body' | 'line'): unknown {
  if (isUtf16(bytes)) {
    throw new RequestError('bad-json', `the ${what} is in UTF-16: send it in UTF-8`)
  }
  if (!isUtf8(bytes)) {
    throw new RequestError('bad-json', `the ${what} is not valid UTF-8`)
  }
  const text = bytes.toString()
  try {
    return parseJsonRecord(text.replace(/^\ufeff/, ''))
  } catch (error) {
    const reason = (error as Error).message
    const seemsSeveralObjects = /\}\s*\{\s*"/.test(text)
    const advice = seemsSeveralObjects ? severalObjectsAdvice[what] : ''
    const message = `the ${what} is not valid JSON: ${reason}${advice}`
    throw new RequestError('bad-json', message)
  }
}

/** Whether text begins with the mark of UTF-16, or with an ASCII character in UTF-16. */
function isUtf16(bytes: Buffer) {
  const [first, second] = bytes
  const hasMark =
    (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
  return hasMark || (bytes.length > 1 && (first === 0) !== (second === 0))
}

/** curl joins the lines of a file that follows `-d @`. */
export const curlAdvice = '(curl -d joins lines, --data-binary keeps them)'

const severalObjectsAdvice = {
  body: '; it seems to hold several plants, which POST /plants/batch creates',
  line: `; it seems to hold several plants: send each on a line of its own ${curlAdvice}`,
}
