import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { type Answer, type Asked, type Check, openWire, type Wire } from './wire.ts'

/** A running plant store, with what a test must know about it. */
export interface RunningStore {
  /** The part before every path. */
  readonly url: string
  readonly tokens: StoreTokens
  /** By default 1 MiB, as in the program. */
  readonly bodyBytesMax?: number
  /** By default 16 KiB, as in the program. */
  readonly headerBytesMax?: number
}

/** Real tokens of the store, one of each kind. */
export interface StoreTokens {
  readonly full: string
  readonly readOnly: string
  readonly writeOnly: string
  readonly expired: string
  /** A token that reads only the metrics. */
  readonly metrics: string
}

export interface AskOptions {
  /** The token to send, `full` unless given. With `null`, no Authorization is sent. */
  readonly token?: string | null
  /** A string is sent as JSON text, anything else unchanged. */
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Sends requests to a store, and compares every answer with the interface description.
 */
export interface Client {
  readonly store: Required<RunningStore>
  /** @param path below the store's own, with the query */
  ask(method: string, path: string, options?: AskOptions): Promise<Answer>
  /** Posts a plant. */
  post(body: string | Uint8Array): Promise<Answer>
  /** Posts a plant with these header fields too, on a connection of its own. */
  postBare(body: string | Uint8Array, fields?: readonly string[]): Promise<Answer>
  /**
   * Sends a request with only these header fields, Host and a token, on a connection of
   * its own.
   *
   * @param request such as `GET /plants/1`
   */
  askBare(request: string, fields?: readonly string[], body?: string): Promise<Answer>
  /** Opens a connection for raw bytes. */
  open(): Promise<Wire>
  /** Sends the bytes of one request and reads its answer, on a connection of its own. */
  exchange(
    asked: Asked | undefined,
    ...bytes: readonly (string | Uint8Array)[]
  ): Promise<Answer>
  /** @param request such as `GET /plants/1` */
  asked(request: string): Asked
  /** Returns the request target of a path below the store's own. */
  target(path: string): string
  close(): void
}

export function createClient(
  running: RunningStore,
  recorder: { readonly check: Check },
): Client {
  const store = { bodyBytesMax: 1024 * 1024, headerBytesMax: 16 * 1024, ...running }
  const agent = new Agent({ keepAlive: true })
  const { pathname, hostname, port } = new URL(store.url)
  const target = (path: string) => `${pathname.replace(/\/$/, '')}${path}`

  const open = () => openWire(store.url, recorder.check)
  const client: Client = {
    store,
    target,
    open,
    asked(request) {
      const [method, path] = request.split(' ') as [string, string]
      return { method, target: target(path) }
    },
    async ask(method, path, { token = store.tokens.full, body, headers = {} } = {}) {
      const outgoing = request({
        agent,
        host: hostname,
        port,
        method,
        path: target(path),
        headers: {
          ...(token !== null && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
          }),
          ...headers,
        },
      })
      // A reset after the answer began shows in the answer.
      outgoing.on('error', () => {}).end(body)
      const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
      const answer = {
        status: incoming.statusCode as number,
        headers: new Map(
          Object.entries(incoming.headers).map(([name, value]) => [name, `${value}`]),
        ),
        body: Buffer.concat(await incoming.toArray()),
        interim: [],
      }
      recorder.check({ method, target: target(path) }, answer)
      return answer
    },
    post: body => client.ask('POST', '/plants', { body }),
    postBare: (body, fields) =>
      client.exchange(client.asked('POST /plants'), plantRequest(client, body, fields)),
    askBare(request, fields = [], body = '') {
      const asked = client.asked(request)
      return client.exchange(
        asked,
        bareRequest(asked, [...hostAndToken(client), ...fields]),
        body,
      )
    },
    async exchange(asked, ...bytes) {
      using wire = await open()
      wire.send(...bytes)
      return await wire.answer(asked)
    },
    close: () => agent.destroy(),
  }
  return client
}

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
  const all = [
    ...hostAndToken(client),
    'content-type: application/json',
    ...length,
    ...fields,
  ]
  return Buffer.concat([
    Buffer.from(bareRequest(client.asked('POST /plants'), all)),
    Buffer.from(body),
  ])
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
