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

interface Contained {
  readonly host?: string
  readonly port?: string
  readonly path?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly options?: readonly string[]
}

/** Resolves to the exit code beside a server that answers 200. */
async function healthBeside(contained: (port: string) => Contained) {
  const free = `${await freePort()}`
  const { environment, options, ...given } = contained(free)
  const listen = JSON.stringify({ host: '127.0.0.1', port: free, path: '', ...given })
  const server = [process.execPath, '-e', container, health, listen]
  const inContainer = ['--pid', '--fork', '--mount-proc', ...server]
  const args = [...inContainer, 'serve', ...(options ?? [])]
  return spawnSync('/usr/bin/unshare', args, {
    env: { ...environment },
    encoding: 'utf8',
  })
}

const rows: readonly (readonly [string, (port: string) => Contained])[] = [
  ['PORT', port => ({ environment: { PORT: port } })],
  [
    'an empty PORT',
    () => ({
      host: '127.0.0.77',
      port: '3000',
      environment: { PORT: '', HOST: '127.0.0.77' },
    }),
  ],
  ['serve --port', port => ({ options: ['--port', port], environment: { PORT: '1' } })],
  ['serve --port=', port => ({ options: [`--port=${port}`] })],
  ['HOST=0.0.0.0', PORT => ({ host: '0.0.0.0', environment: { PORT, HOST: '0.0.0.0' } })],
  ['HOST=[::]', PORT => ({ host: '::', environment: { PORT, HOST: '[::]' } })],
  [
    'serve --host',
    port => ({ host: '127.0.0.3', options: ['--host', '127.0.0.3', '--port', port] }),
  ],
  [
    'a path in BASE_URL',
    PORT => ({
      path: '/a',
      environment: { PORT, BASE_URL: 'https://plants.example/a/' },
    }),
  ],
  [
    'a proxy for requests of Node',
    PORT => ({
      environment: {
        PORT,
        NODE_USE_ENV_PROXY: '1',
        HTTP_PROXY: 'http://127.0.0.1:1',
        http_proxy: 'http://127.0.0.1:1',
      },
    }),
  ],
]

const mayUnshare =
  spawnSync('/usr/bin/unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0

test.skipIf(!mayUnshare).each(rows)(
  'a container is healthy with %s',
  async (_, contained) => {
    const { status, stderr } = await healthBeside(contained)

    expect(status, stderr).toBe(0)
  },
)
