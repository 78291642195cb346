import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Config } from './config.ts'
import { listen } from './listening.ts'

// Importing it from the HTTP package would load Fastify into this thread.
const mediaType = 'text/plain; version=0.0.4; charset=utf-8'

/** Serves `GET /metrics` without a token, on a port that only the operator's network should reach. */
export async function serveMetrics(
  { host }: Config,
  port: number,
  metrics: () => Promise<string>,
): Promise<AsyncDisposable> {
  const server = createServer(async (request, response) => {
    const isKnown = request.url?.replace(/\?.*$/, '') === '/metrics'
    if (!isKnown || !['GET', 'HEAD'].includes(request.method ?? '')) {
      response.writeHead(isKnown ? 405 : 404, isKnown ? { allow: 'GET, HEAD' } : {}).end()
      return
    }
    await metrics().then(
      text => response.writeHead(200, { 'content-type': mediaType }).end(text),
      () => response.writeHead(500).end(),
    )
  })
  await listen(server, host, port, 'METRICS_PORT')
  return {
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
