import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type ClientOptions, createPlantClient } from '@plant-store/client'
import { listenLocally } from '@plant-store/harness'

/** Answers one request, or does something else with it. */
export type Step = (response: ServerResponse, request: IncomingMessage) => void

export interface StoreRequest
  extends Pick<IncomingMessage, 'method' | 'url' | 'headers'> {
  readonly body: string
}

/**
 * A server that does with each request what the script says next, and fails on one too
 * many, and a client of it.
 */
export async function scripted(
  script: readonly Step[],
  options: Partial<ClientOptions> = {},
) {
  const requests: StoreRequest[] = []
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) {
      body += chunk
    }
    const step =
      script[requests.length] ??
      answer(500, { error: 50000, message: 'the script has ended' })
    requests.push({ method, url, headers, body })
    step(response, request)
  })
  const baseUrl = `http://127.0.0.1:${await listenLocally(server)}`
  return {
    baseUrl,
    client: createPlantClient({ baseUrl, token: 't', ...options }),
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export function answer(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): Step {
  return response => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(text)
  }
}

/** Takes the request and then breaks the connection, as a server that dies does. */
export const die: Step = (_response, request) => request.socket.destroy()

/** Begins an answer and breaks off. */
export const breakOff: Step = (response, request) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
  response.write('{"id": 1, ', () => request.socket.destroy())
}

export const busy = (headers: Record<string, string> = {}) =>
  answer(503, { error: 50301, message: 'too many changes are waiting' }, headers)
export const unavailable = answer(503, {
  error: 50302,
  message: 'the store cannot be used',
})

/** Rejects when the attempt is given up, as a fetch does that gets no answer. */
export function silence(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) =>
    signal?.addEventListener('abort', () => reject(signal.reason)),
  )
}
