import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { freePort } from '@plant-store/harness'
import { expect, test } from 'vitest'

const health = join(import.meta.dirname, '../src/health.cjs')

/**
 * Process 1 of a container. It listens where its third argument says, answers 200 to a
 * request without a host of a proxy, and checks its own health.
 */
const container = `
  const [health, listen] = process.argv.slice(1)
  const { host, port, path } = JSON.parse(listen)
  const server = require('node:http').createServer((request, response) => {
    response.writeHead(request.url === path + '/readyz' ? 200 : 500).end()
  })
  server.listen(port, host, () => {
    require('node:child_process').execFile(process.execPath, [health], error => {
      process.exit(error ? error.code : 0)
    })
  })`

/** Where the server of a container listens, and how it was started. */
interface Contained {
  readonly host?: string
  readonly port?: string
  readonly path?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly options?: readonly string[]
}

const PORT = `${await freePort()}`
const noProxy = 'http://127.0.0.1:1'
const containers: Readonly<Record<string, Contained>> = {
  PORT: { environment: { PORT } },
  'an empty PORT': {
    host: '127.0.0.77',
    port: '3000',
    environment: { PORT: '', HOST: '127.0.0.77' },
  },
  'serve --port': { options: ['--port', PORT], environment: { PORT: '1' } },
  'serve --port=': { options: [`--port=${PORT}`] },
  'HOST=0.0.0.0': { host: '0.0.0.0', environment: { PORT, HOST: '0.0.0.0' } },
  'HOST=[::]': { host: '::', environment: { PORT, HOST: '[::]' } },
  'serve --host': { host: '127.0.0.3', options: ['--host', '127.0.0.3', '--port', PORT] },
  'a path in BASE_URL': {
    path: '/a',
    environment: { PORT, BASE_URL: 'https://plants.example/a/' },
  },
  'a proxy for requests of Node': {
    environment: {
      PORT,
      NODE_USE_ENV_PROXY: '1',
      HTTP_PROXY: noProxy,
      http_proxy: noProxy,
    },
  },
}

const mayUnshare =
  spawnSync('/usr/bin/unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0

test.skipIf(!mayUnshare).each(Object.entries(containers))(
  'a container is healthy with %s',
  (_, { environment, options = [], ...given }) => {
    // Beside a server that answers 200.
    const listen = JSON.stringify({ host: '127.0.0.1', port: PORT, path: '', ...given })
    const server = [process.execPath, '-e', container, health, listen, 'serve']
    const args = ['--pid', '--fork', '--mount-proc', ...server, ...options]

    const { status, stderr } = spawnSync('/usr/bin/unshare', args, {
      env: { ...environment },
      encoding: 'utf8',
    })

    expect(status, stderr).toBe(0)
  },
)
