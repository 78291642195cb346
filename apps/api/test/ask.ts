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

/** @param target such as `GET /plants` */
export async function ask(
  server: { readonly url: string },
  target: string,
  { token: bearer = token, headers, body = null }: Request = {},
): Promise<{
  readonly status: number
  readonly headers: Headers
  readonly text: string
}> {
  const [method = '', path = ''] = target.split(' ')
  const common = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
  const request = { method, headers: { ...common, ...headers }, body }
  const response = await fetch(server.url + path, request)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text }
}

export function create(server: { readonly url: string }, id: number, bearer?: string) {
  return ask(server, 'POST /plants', { token: bearer, body: `{"id":${id},"name":"a"}` })
}

/** Opens a connection for raw bytes. */
export const connectRaw = (url: string) => openWire(url, () => {})

/** Creates a plant over a connection that stays open. */
export function createOver(client: Wire, id: number, base = '') {
  const body = `{"id":${id},"name":"a"}`
  client.send(
    `POST ${base}/plants HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${token}\r\n`,
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  return client.answer(undefined)
}
