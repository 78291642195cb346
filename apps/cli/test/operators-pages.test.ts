import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { createGunzip } from 'node:zlib'
import { freePort, launch, startServer, until } from '@plant-store/harness'
import { commandProgram } from '@plant-store/harness/command'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { addProgram, block, docs, documents, runBlock as runBlockIn } from './pages.ts'
import { Place } from './place.ts'

const { PATH } = process.env

const isThere = (program: string, flag: string) => spawnSync(program, [flag]).status === 0

let place: Place
beforeEach(() => {
  place = new Place()
  addProgram(place)
})
afterEach(() => place[Symbol.asyncDispose]())

const runBlock = (words: string, replaced: Readonly<Record<string, string>> = {}) =>
  runBlockIn(place, words, replaced)

describe('what the pages for operators say to run works:', () => {
  test('a backup and its restore, and a rollback', async () => {
    await place.load(0, 10)
    expect(runBlock('backup plants.backup')).toMatchObject({ status: 0, stderr: '' })
    copyFileSync(place.path('plants.backup'), place.path('before-upgrade.backup'))
    for (const restore of ['restore plants.backup', 'restore before-upgrade.backup']) {
      await place.load(10, 10)
      expect(runBlock(restore)).toMatchObject({ status: 0, stderr: '' })
      expect(await place.count()).toBe(10)
    }
  })

  test('a nightly backup', async () => {
    await place.load(0, 10)
    expect(runBlock('backup --keep', { '/backup': 'backups' })).toMatchObject({
      status: 0,
      stderr: '',
    })
    const [made = ''] = readdirSync(place.path('backups'))
    expect(await place.run(`check backups/${made}`)).toMatchObject({ code: 0 })
    // The units of the release folder are that command.
    const unit = readFileSync(
      new URL('../deploy/plant-store-backup.service', docs),
      'utf8',
    )
    expect(unit).toMatch(
      /^ExecStart=\/opt\/plant-store\/bin\/plant-store backup --keep 14 \/var\/lib\/plant-store-backups$/m,
    )
  })

  test('what can be read of a damaged store is added to the last backup', async () => {
    await place.load(0, 500)
    await place.run('backup last.backup')
    await place.load(500, 500)
    const bytes = readFileSync(place.store)
    // A page of plants that the backup has.
    const page = Math.floor(bytes.indexOf('plant 100 ') / 4096)
    bytes.fill(0xff, page * 4096, (page + 1) * 4096)
    writeFileSync(place.store, bytes)
    const exported = runBlock('export --damaged')
    expect(exported.stderr).toMatch(/ exported in \ds; \d+ others could not be read\n$/)
    expect(exported.status).toBe(3)
    const path = {
      '/var/lib/plant-store-backups/plants.db-2026-11-22T031700Z.backup': 'last.backup',
    }
    expect(runBlock('import --replace saved.ndjson', path)).toMatchObject({
      status: 0,
      stderr: '',
    })
    expect(await place.count()).toBe(1_000)
  })

  test(
    'what Prometheus needs',
    needs('promtool', isThere('promtool', '--version')),
    async () => {
      await place.load(0, 1)
      const folders = {
        '/opt/plant-store': fileURLToPath(new URL('../deploy', docs)),
        // The user of a package of Prometheus.
        '-o prometheus ': '',
        '/etc/prometheus': place.folder,
      }
      expect(runBlock('--scope metrics', folders)).toMatchObject({ status: 0 })
      expect(statSync(place.path('plant-store.token')).mode & 0o777).toBe(0o600)
      const config = place.path('prometheus.yml')
      writeFileSync(config, block('yaml', '# prometheus.yml'))
      const { status, stdout } = spawnSync('promtool', ['check', 'config', config], {
        encoding: 'utf8',
      })
      expect(status).toBe(0)
      expect(stdout).toMatch(/SUCCESS: \d+ rules found/)
    },
  )

  test('a token is created beside the server, and rotated', async () => {
    const server = await place.serve()
    const statusOf = (token: string) => server.request('GET /plants', token)
    const { status, stdout: first } = runBlock(
      'token create --name operator --scope write',
    )
    expect(status).toBe(0)
    expect(await statusOf(first.trim())).toBe(200)
    const { stdout } = runBlock('token revoke operator')
    const [second = ''] = stdout.split('\n')
    expect(await statusOf(second)).toBe(200)
    await until(
      'the first is refused',
      async () => (await statusOf(first.trim())) === 401,
    )
    const used = /\noperator-2 .* \d{4}-\d\d-\d\d \d\d:\d\dZ\n$/
    await until('its use is listed', async () =>
      used.test((await place.run('token list')).stdout),
    )
  })
})

test('the pages name the release by its version', () => {
  const named = [...documents.matchAll(/\bplant-store[-:](\d+\.\d+\.\d+)\b/g)].map(
    ([, version]) => version,
  )
  expect(named.length).toBeGreaterThan(4)
  expect(new Set(named)).toEqual(new Set([manifest.version]))
  const readme = readFileSync(new URL('../README.md', docs), 'utf8')
  expect(readme.replaceAll(/\s+/g, ' ')).toContain(
    `Version ${manifest.version} is complete`,
  )
})

const proxies = {
  nginx: {
    ...needs('nginx', isThere('nginx', '-v') && isThere('openssl', 'version')),
    start(folder: string, blocks: string) {
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        name => `${name}_temp_path ${folder}/${name};`,
      )
      const config = `daemon off; master_process off; pid ${folder}/pid; events {} http { access_log off; ${temporary.join(' ')}\n${blocks} }`
      writeFileSync(join(folder, 'nginx.conf'), config)
      return launch(['nginx', '-e', 'stderr', '-c', join(folder, 'nginx.conf')], {
        environment: { PATH: PATH },
      })
    },
    replaced: (port: number, folder: string) => ({
      'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
      '/etc/ssl/plants.example.pem': `${folder}/cert.pem`,
      '/etc/ssl/plants.example.key': `${folder}/key.pem`,
    }),
    language: 'nginx',
  },
  caddy: {
    ...needs('caddy', isThere('caddy', 'version') && isThere('openssl', 'version')),
    start(folder: string, blocks: string) {
      const file = join(folder, 'Caddyfile')
      writeFileSync(file, `{\n  admin off\n  auto_https disable_redirects\n}\n${blocks}`)
      const home = { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
      return launch(['caddy', 'run', '--adapter', 'caddyfile', '--config', file], {
        environment: { PATH: PATH, ...home },
      })
    },
    // It would fetch a certificate by itself.
    replaced: (port: number, folder: string) => ({
      'plants.example {': `https://plants.example:${port} {\n  bind 127.0.0.1\n  tls ${folder}/cert.pem ${folder}/key.pem`,
    }),
    language: 'caddyfile',
  },
}

describe.each(Object.entries(proxies))(
  'behind %s',
  (_, { start, replaced, language, ...options }) => {
    test(
      'clients see one service below a path, and the server sees each client',
      options,
      async () => {
        const folder = temporaryFolder()
        const certificate = join(folder, 'cert.pem')
        execFileSync(
          'openssl',
          [
            'req',
            '-x509',
            '-newkey',
            'rsa:2048',
            '-nodes',
            '-days',
            '2',
            '-subj',
            '/CN=plants.example',
          ].concat([
            '-addext',
            'subjectAltName=DNS:plants.example',
            '-keyout',
            join(folder, 'key.pem'),
            '-out',
            certificate,
          ]),
          { stdio: 'ignore' },
        )
        const [, environment = ''] =
          /^(BASE_URL=.*) plant-store serve$/m.exec(block('sh', 'TRUST_PROXY=')) ?? []
        await using server = await startServer({
          command: [process.execPath, commandProgram, 'serve'],
          databaseUrl: `file:${place.store}`,
          environment: {
            ACCESS_TOKENS: 'given-by-the-environment',
            ...Object.fromEntries(
              environment.split(' ').map(each => each.split('=') as [string, string]),
            ),
          },
        })
        const port = await freePort()
        const all = {
          '127.0.0.1:3000': new URL(server.url).host,
          ...replaced(port, folder),
        }
        const blocks = Object.entries(all).reduce(
          (config, [from, to]) => {
            expect(config).toContain(from)
            return config.replaceAll(from, to)
          },
          block(language, 'plants.example'),
        )
        await using proxy = start(folder, blocks)

        const ask = async (path: string, method = 'GET', body?: string) => {
          const asked = request({
            ...{
              host: '127.0.0.1',
              port,
              servername: 'plants.example',
              ca: readFileSync(certificate),
            },
            ...{ path, method, localAddress: '127.0.0.9' },
            headers: {
              host: 'plants.example',
              authorization: 'Bearer given-by-the-environment',
              'x-forwarded-for': '192.0.2.1',
              'accept-encoding': 'gzip',
              ...(body !== undefined && { 'content-type': 'application/json' }),
            },
          }).end(body)
          const [response] = await once(asked, 'response')
          const { link, etag, 'content-encoding': encoding } = response.headers
          const content = encoding === 'gzip' ? response.pipe(createGunzip()) : response
          return {
            status: response.statusCode,
            link,
            etag,
            encoding,
            body: await text(content),
          }
        }
        await until('the proxy to answer', async () => {
          proxy.assertRunning()
          return (await ask('/garden/healthz')).status === 200
        })
        // A list is compressed, and a plant keeps its ETag, however long it is.
        const plant = { id: 1, name: 'x'.repeat(10_000) }
        const { etag } = await ask('/garden/plants/1', 'PUT', JSON.stringify(plant))
        expect(etag).toMatch(/^"\w+"$/)
        expect(await ask('/garden/plants/1')).toMatchObject({
          encoding: undefined,
          etag,
          body: JSON.stringify(plant),
        })
        expect(await ask('/garden/plants')).toMatchObject({
          encoding: 'gzip',
          body: JSON.stringify([plant]),
        })
        await ask('/garden/plants', 'POST', '{"id":2,"name":"a"}')
        const link = '</garden/plants?limit=1&after=1>; rel="next"'
        expect(await ask('/garden/plants?limit=1')).toMatchObject({ status: 200, link })
        // Its own answer, and not one of the proxy.
        expect(
          await ask('/garden/plants', 'POST', `"${'x'.repeat(2 ** 20)}"`),
        ).toMatchObject({
          status: 413,
          body: expect.stringMatching(/^\{"error":41301,/),
        })
        // No empty 200, as Caddy has where no block matches.
        expect((await ask('/garden')).status).not.toBe(200)
        const ofClients = () => server.log.filter(({ msg }) => msg === 'answered')
        await until('the log', () => ofClients().length >= 6)
        expect(
          new Set(
            ofClients().map(line => (line as unknown as { client: string }).client),
          ),
        ).toEqual(new Set(['127.0.0.9']))
      },
    )
  },
)
