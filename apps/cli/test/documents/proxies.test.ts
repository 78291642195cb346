import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import {
  freePort,
  isInstalled,
  launch,
  type Program,
  startServer,
  until,
} from '@plant-store/harness'
import { commandProgram } from '@plant-store/harness/command'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { block } from './pages.ts'

// The configurations of docs/install.md, each in front of a real server.

const PATH = process.env['PATH']
const token = 'given-by-the-environment'
/** The address of the client, as the proxy sees it. */
const clientAddress = '127.0.0.9'

const hasOpenssl = isInstalled('openssl')

interface ProxyProgram {
  readonly options: ReturnType<typeof needs>
  /** The language of its block in the page. */
  readonly language: string
  /** Returns what stands in the place of the page's own ports and files. */
  replacements(port: number, folder: string): Readonly<Record<string, string>>
  start(folder: string, blocks: string): Program
}

const nginx: ProxyProgram = {
  options: needs('nginx', isInstalled('nginx') && hasOpenssl),
  language: 'nginx',
  replacements: (port, folder) => ({
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    '/etc/ssl/plants.example.pem': `${folder}/cert.pem`,
    '/etc/ssl/plants.example.key': `${folder}/key.pem`,
  }),
  start(folder, blocks) {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      name => `${name}_temp_path ${folder}/${name};`,
    )
    const lines = [
      `daemon off; master_process off; pid ${folder}/pid; events {}`,
      `http { access_log off; ${temporary.join(' ')}`,
      `${blocks} }`,
    ]
    const file = join(folder, 'nginx.conf')
    writeFileSync(file, lines.join('\n'))
    return launch(['nginx', '-e', 'stderr', '-c', file], { environment: { PATH } })
  },
}

const caddy: ProxyProgram = {
  options: needs('caddy', isInstalled('caddy') && hasOpenssl),
  language: 'caddyfile',
  // Without a certificate, it would fetch one.
  replacements: (port, folder) => ({
    'plants.example {': [
      `https://plants.example:${port} {`,
      '  bind 127.0.0.1',
      `  tls ${folder}/cert.pem ${folder}/key.pem`,
    ].join('\n'),
  }),
  start(folder, blocks) {
    const file = join(folder, 'Caddyfile')
    writeFileSync(file, `{\n  admin off\n  auto_https disable_redirects\n}\n${blocks}`)
    return launch(['caddy', 'run', '--adapter', 'caddyfile', '--config', file], {
      // It writes there.
      environment: { PATH, HOME: folder },
    })
  },
}

function makeCertificate(folder: string): void {
  const options = [
    ['-newkey', 'rsa:2048', '-nodes', '-days', '2'],
    ['-subj', '/CN=plants.example'],
    ['-addext', 'subjectAltName=DNS:plants.example'],
    ['-keyout', join(folder, 'key.pem')],
    ['-out', join(folder, 'cert.pem')],
  ]
  execFileSync('openssl', ['req', '-x509', ...options.flat()], { stdio: 'ignore' })
}

/** Starts the server with the settings that the page has for a proxy. */
function startServerBehindProxy(folder: string) {
  const command = /^(BASE_URL=.*) plant-store serve$/m.exec(block('sh', 'TRUST_PROXY='))
  const assignments = command?.[1]?.split(' ') ?? []
  const settings = assignments.map(assignment => assignment.split('='))
  return startServer({
    command: [process.execPath, commandProgram, 'serve'],
    databaseUrl: `file:${join(folder, 'plants.db')}`,
    environment: { ACCESS_TOKENS: token, ...Object.fromEntries(settings) },
  })
}

function configurationOf(
  { language, replacements }: ProxyProgram,
  folder: string,
  port: number,
  serverUrl: string,
): string {
  const all = {
    '127.0.0.1:3000': new URL(serverUrl).host,
    ...replacements(port, folder),
  }
  let configuration = block(language, 'plants.example')
  for (const [from, to] of Object.entries(all)) {
    expect(configuration, language).toContain(from)
    configuration = configuration.replaceAll(from, to)
  }
  return configuration
}

/** Returns a client that sends requests through the proxy. */
function createClient(folder: string, port: number) {
  const ca = readFileSync(join(folder, 'cert.pem'))
  const address = { host: '127.0.0.1', port, servername: 'plants.example', ca }

  return async function ask(path: string, method = 'GET', body?: string) {
    const headers = {
      host: 'plants.example',
      authorization: `Bearer ${token}`,
      'x-forwarded-for': '192.0.2.1',
      'accept-encoding': 'gzip',
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const options = { ...address, path, method, headers, localAddress: clientAddress }
    const [response] = await once(request(options).end(body), 'response')
    const { link, etag, 'content-encoding': encoding } = response.headers
    const content = encoding === 'gzip' ? response.pipe(createGunzip()) : response
    const answer = { status: response.statusCode, link, etag, encoding }
    return { ...answer, body: await text(content) }
  }
}

describe.each(Object.entries({ nginx, caddy }))('behind %s', (_, program) => {
  test(
    'clients see one service below a path, and the server sees each client',
    program.options,
    async () => {
      const folder = temporaryFolder()
      makeCertificate(folder)
      await using server = await startServerBehindProxy(folder)
      const port = await freePort()
      const configuration = configurationOf(program, folder, port, server.url)
      await using proxy = program.start(folder, configuration)
      const ask = createClient(folder, port)
      await until('the proxy to answer', async () => {
        proxy.assertRunning()
        const { status } = await ask('/garden/healthz')
        return status === 200
      })

      const plant = JSON.stringify({ id: 1, name: 'n', tag: 'x'.repeat(10_000) })
      const put = await ask('/garden/plants/1', 'PUT', plant)
      const read = await ask('/garden/plants/1')
      const list = await ask('/garden/plants')
      await ask('/garden/plants', 'POST', '{"id":2,"name":"a"}')
      const page = await ask('/garden/plants?limit=1')
      const tooLong = await ask('/garden/plants', 'POST', `"${'x'.repeat(2 ** 20)}"`)
      const elsewhere = await ask('/garden')

      // A list is compressed, and a plant keeps its ETag, however long it is.
      expect(put.etag).toMatch(/^"\w+"$/)
      expect(read).toMatchObject({ encoding: undefined, etag: put.etag, body: plant })
      expect(list).toMatchObject({ encoding: 'gzip', body: `[${plant}]` })
      const link = '</garden/plants?limit=1&after=1>; rel="next"'
      expect(page).toMatchObject({ status: 200, link })
      // The server answers, not the proxy.
      expect(tooLong.status).toBe(413)
      expect(tooLong.body).toMatch(/^\{"error":41301,/)
      // Where no block matches, Caddy would answer with an empty 200.
      expect(elsewhere.status).not.toBe(200)

      const answered = () => server.log.filter(({ msg }) => msg === 'answered')
      await until('the log', () => answered().length >= 6)
      for (const line of answered()) {
        expect(line, 'a line of the log').toMatchObject({ client: clientAddress })
      }
    },
  )
})

const hasHaproxy = needs('haproxy', isInstalled('haproxy'))

test('HAProxy sends no request to a server that stops', hasHaproxy, async () => {
  const folder = temporaryFolder()
  const port = await freePort()
  const settings = {
    databaseUrl: `file:${join(folder, 'plants.db')}`,
    environment: { ACCESS_TOKENS: token, SHUTDOWN_DELAY: '5s' },
    keepsOnlyWarnings: true,
  }
  await using stopping = await startServer(settings)
  await using staying = await startServer(settings)
  const backend = block('haproxy', 'httpchk')
    .replace('10.0.0.1:3000', new URL(stopping.url).host)
    .replace('10.0.0.2:3000', new URL(staying.url).host)
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend plants
  bind 127.0.0.1:${port}
  default_backend plant_store
${backend}`,
  )
  const command = ['haproxy', '-db', '-f', file] as const
  await using proxy = launch(command, { environment: { PATH } })
  const ask = async () => {
    const headers = { authorization: `Bearer ${token}`, connection: 'close' }
    const { status } = await fetch(`http://127.0.0.1:${port}/plants`, { headers })
    return status
  }
  await until('the proxy to answer', async () => {
    proxy.assertRunning()
    return (await ask().catch(() => 0)) === 200
  })

  const statuses = new Set<number>()
  let isStopped = false
  const stop = stopping.end().finally(() => {
    isStopped = true
  })
  while (!isStopped) {
    statuses.add(await ask())
  }

  expect(await stop).toBe(0)
  expect([...statuses, await ask()]).toEqual([200, 200])
})
