import type { Client } from './client.ts'
import type { Asked } from './recorder.ts'

/**
 * Returns the bytes of a request for the plants, with a token and a body.
 *
 * @param fields further header fields as they are sent
 */
export function plantRequest(
  client: Client,
  body: string | Uint8Array,
  fields: readonly string[] = [],
): Buffer {
  const isChunked = fields.some(field => /^transfer-encoding:/i.test(field))
  const length = isChunked ? [] : [`content-length: ${Buffer.byteLength(body)}`]
  const all = [...hostAndToken(client), 'content-type: application/json', ...length, ...fields]
  return Buffer.concat([Buffer.from(bareRequest(client.asked('POST /plants'), all)), Buffer.from(body)])
}

/** Returns the bytes of a request without a body. */
export function bareRequest(
  { method, target }: Asked,
  fields: readonly string[],
  version = 'HTTP/1.1',
): string {
  return `${[`${method} ${target} ${version}`, ...fields].join('\r\n')}\r\n\r\n`
}

export function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

/** Returns Host and a token with every scope. */
export function hostAndToken(client: Client): readonly string[] {
  return ['host: h', `authorization: Bearer ${client.store.tokens.full}`]
}
