import { type ServerOptions, startServer } from '@plant-store/harness'
import { openWire, type Wire } from '@plant-store/http/testing'

export const token = 'given-by-configuration'

/** Starts a server that admits {@link token}. */
export const start = (
  environment: Readonly<Record<string, string>> = {},
  options: ServerOptions = {},
) => startServer({ ...options, environment: { ACCESS_TOKENS: token, ...environment } })

/**
 * A header for a connection of its own, so that any of the threads may get the request.
 */
export const alone = { connection: 'close' }

interface Request {
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | null
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Returns the number of a failure, or the status. */
  outcome(): number
}

/** @param target such as `GET /plants` */
export async function ask(
  server: { readonly url: string },
  target: string,
  request: Request = {},
): Promise<Answer> {
  const [method = '', path = ''] = target.split(' ')
  const { token: bearer = token, body = null } = request
  const common = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
  const headers = { ...common, ...request.headers }
  const response = await fetch(server.url + path, { method, headers, body })
  const { status } = response
  const text = await response.text()
  return {
    status,
    headers: response.headers,
    text,
    outcome: () => (response.ok ? status : JSON.parse(text).error),
  }
}

export const create = (
  server: { readonly url: string },
  id: number,
  bearer?: string,
): Promise<Answer> =>
  ask(server, 'POST /plants', { token: bearer, body: `{"id":${id},"name":"a"}` })

/** Opens a connection for raw bytes. */
export function connectRaw(url: string): Promise<Wire> {
  return openWire(url, () => {})
}

/** Returns a whole request with a body, on a connection that stays open. */
export function rawPost(bearer: string, body: string, path = '/plants'): string {
  return [
    `POST ${path} HTTP/1.1`,
    'Host: h',
    `Authorization: Bearer ${bearer}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}
