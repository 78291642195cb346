import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { serverDefaults } from '@plant-store/http/testing'
import { expect, test } from 'vitest'
import { misspeltSettings, readConfig } from '../src/config.ts'

const provider = {
  JWT_ISSUER: 'https://identity.example/',
  JWT_AUDIENCE: 'plants, https://plants.example',
  JWT_JWKS_URL: 'https://identity.example/jwks',
}

/** Returns the lines of the error, or none if the configuration is accepted. */
function faultsOf(environment: Record<string, string>): string[] {
  try {
    readConfig({ ...provider, ...environment })
    return []
  } catch (error) {
    return (error as Error).message.split('\n')
  }
}

test('the defaults are those of other tests, with two threads on Linux', () => {
  const { serverLimits, httpThreads } = readConfig({})
  const threads = process.platform === 'linux' ? Math.min(2, availableParallelism()) : 1

  expect(serverDefaults.limits).toMatchObject(serverLimits)
  expect(httpThreads).toBe(threads)
})

test('an empty variable counts as unset, and an unknown one is ignored', () => {
  const environment = { PORT: '', ACCESS_TOKENS: '', JWT_ISSUER: '', port: 'x' }

  expect(readConfig(environment)).toEqual(readConfig({}))
})

const rightValues = {
  'HOST=[::1]': { host: '::1' },
  'PORT=65535': { port: 65_535 },
  'BASE_URL=http://[::1]:80/a-b_c.d~e/': { baseUrl: 'http://[::1]/a-b_c.d~e/' },
  'CORS_ORIGINS=https://[::1]:8443 , capacitor://localhost,chrome-extension://ab-1,app://a:80':
    {
      corsOrigins: [
        'https://[::1]:8443',
        'capacitor://localhost',
        'chrome-extension://ab-1',
        'app://a:80',
      ],
    },
  'OTEL_EXPORTER_OTLP_ENDPOINT=http://a:1': { traces: { endpoint: 'http://a:1/' } },
  'OTEL_TRACES_SAMPLER_ARG=0.25': { traces: { sampledShare: 0.25 } },
  'ACCESS_TOKENS=of-20-characters/+==, and.of~more_than-20.0': {
    accessTokens: ['of-20-characters/+==', 'and.of~more_than-20.0'],
  },
  'TRUST_PROXY=127.0.0.1, 10.0.0.0/8,fd00::/8, ::1': {
    trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8', '::1'],
  },
  'SHUTDOWN_DELAY=0ms': { shutdownDelayMs: 0 },
  'SHUTDOWN_TIMEOUT=500ms': { shutdownTimeoutMs: 500 },
  'SHUTDOWN_TIMEOUT=5s': { shutdownTimeoutMs: 5_000 },
  'SHUTDOWN_TIMEOUT=5min': { shutdownTimeoutMs: 300_000 },
  'SHUTDOWN_TIMEOUT=5m': { shutdownTimeoutMs: 300_000 },
  'SHUTDOWN_TIMEOUT=24h': { shutdownTimeoutMs: 86_400_000 },
  'BODY_LIMIT=64': { serverLimits: { bodyBytesMax: 64 } },
  'BODY_LIMIT=64KiB': { serverLimits: { bodyBytesMax: 65_536 } },
  'BODY_LIMIT=64MiB': { serverLimits: { bodyBytesMax: 2 ** 26 } },
  'JWT_AUDIENCE=a, b': { jwt: { audience: ['a', 'b'] } },
  'JWT_ALGORITHMS=RS256, ES256': { jwt: { algorithms: ['RS256', 'ES256'] } },
  'JWT_CLOCK_SKEW=5min': { jwt: { clockSkewMs: 300_000 } },
}

test.each(Object.entries(rightValues))(
  'a right value is taken: %s',
  (setting, expected) => {
    const [name = '', value] = setting.split(/=(.*)/)

    expect(readConfig({ ...provider, [name]: value })).toMatchObject(expected)
  },
)

/** Each rule has its cases at one setting, and each setting a value beyond its bounds. */
const wrongValues: Readonly<Record<string, readonly string[]>> = {
  PORT: ['65536', '-1', '80.5', '0x50', '1e3', 'http', '99999999999', '80constructor'],
  DATABASE_URL: ['plants.db'],
  BASE_URL: [
    'example.org',
    'ftp://example.org',
    'http://',
    'http://a/?',
    'http://a/#',
    'http://a/b%20c',
    'http://a/:b',
    'http://a/b*/c',
    'http://a/ä',
    'http://*:3000/',
    'http://user:secret@a/',
    'http://:secret@a/',
    'http://secret@a/',
  ],
  CORS_ORIGINS: [
    '*',
    'null',
    'example.org',
    'https://example.org/',
    'https://EXAMPLE.org',
    'https://example.org:443',
    'https://*.example.org',
    'tauri://user@localhost',
    'file://',
    'https://a,,',
  ],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['grpc://localhost:4317'],
  OTEL_SDK_DISABLED: ['TRUE'],
  OTEL_TRACES_EXPORTER: ['zipkin'],
  OTEL_TRACES_SAMPLER: ['always'],
  OTEL_TRACES_SAMPLER_ARG: ['-1', '1.5', '50%', '2'],
  ACCESS_TOKENS: [
    'of-19-secrets-00000',
    'secret value of tokens',
    'of-20-secrets-000000,',
  ],
  DATABASE_TIMEOUT: ['0s'],
  DATABASE_POOL_MAX: ['0', '1001'],
  LOG_LEVEL: ['INFO'],
  LOG_FORMAT: ['text'],
  HTTP_THREADS: ['0', '65'],
  BODY_LIMIT: ['0', '1.5MiB', '1MB', '1kib', '65MiB', 'MiB', '1 MiB', '1toString'],
  WAL_LIMIT: ['127MiB', '1099511627777'],
  PAGE_LIMIT: ['0', '65MiB'],
  HELD_LIMIT: ['0', '4097MiB'],
  HEADER_LIMIT: ['1023', '2MiB'],
  REQUEST_TIMEOUT: ['0s', '30', '30mins', '-1s', '1.5s', '86401s', 's', '5valueOf'],
  HEADERS_TIMEOUT: ['0s'],
  KEEP_ALIVE_TIMEOUT: ['0s'],
  INACTIVITY_TIMEOUT: ['0s'],
  MAX_CONNECTIONS: ['0', '1000001'],
  TRUST_PROXY: ['proxy', '10.0.0/8', '::/129', '10.0.0.1,', '0.0.0.0/0', '::/0'],
  QUEUE_LIMIT: ['0', '1000001'],
  SHUTDOWN_DELAY: ['0', '25h'],
  SHUTDOWN_TIMEOUT: ['0s'],
  JWT_ISSUER: ['"https://identity.example/"', 'https://a/ https://b/'],
  JWT_AUDIENCE: ['a,,b', "'plants'"],
  JWT_JWKS_URL: ['http://identity.example/jwks'],
  JWT_ALGORITHMS: ['RS256,none'],
  JWT_CLOCK_SKEW: ['301s'],
}

const wrongSettings = Object.entries(wrongValues).flatMap(([name, values]) =>
  values.map(value => [name, value] as const),
)

test.each(wrongSettings)('a wrong value is refused by name: %s=%s', (name, value) => {
  const faults = faultsOf({ [name]: value })

  expect(faults).toEqual([expect.stringMatching(`^${name} must be .{10,}$`)])
  expect(faults.join(), 'a log may keep it').not.toContain('secret')
})

test.each([
  'localhost\r',
  'localhost\n',
  ' localhost',
  '\tlocalhost',
  'localhost\u00a0',
  '\ufefflocalhost',
  'localhost\u200b',
  ' ',
])('a blank around a value is refused: %j', value => {
  expect(faultsOf({ HOST: value })).toEqual([
    'HOST must not begin or end with white space, such as the line end of a file from Windows',
  ])
})

test.each<[string, Record<string, string>, string]>([
  [
    'without an issuer and keys',
    { JWT_ISSUER: '', JWT_JWKS_URL: '' },
    'JWT_ISSUER and JWT_JWKS_URL must be set too: JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS_URL belong together',
  ],
  [
    'that is absent, but has settings',
    { JWT_ISSUER: '', JWT_AUDIENCE: '', JWT_JWKS_URL: '', JWT_CLOCK_SKEW: '10s' },
    'JWT_CLOCK_SKEW must not be set without JWT_ISSUER',
  ],
])('an identity provider %s is refused in one line', (_, environment, fault) => {
  expect(faultsOf(environment)).toEqual([fault])
})

/** Returns the path of a new file. */
function fileOf(content: string | Buffer): string {
  const file = join(temporaryFolder(), 'secret')
  writeFileSync(file, content)
  return file
}

test('secrets may come from files, which may end with a line end', () => {
  const config = readConfig({
    DATABASE_URL: '',
    DATABASE_URL_FILE: fileOf('postgres://a:b@c/d\n'),
    // Editors on Windows begin a file with a byte order mark.
    ACCESS_TOKENS_FILE: fileOf('\uFEFFof-20-characters-000\r\n'),
  })

  expect(config.store.url).toBe('postgres://a:b@c/d')
  expect(config.accessTokens).toEqual(['of-20-characters-000'])
})

test.each([
  ['has only a line end', '\n', 'must not be empty'],
  ['has two line ends', 'file:a\n\n', 'must not begin or end with white space'],
  ['has another value', 'secret value', 'must be file: '],
])('a file with a secret that %s is refused by name', (_, content, reason) => {
  const faults = faultsOf({ DATABASE_URL_FILE: fileOf(content) })

  expect(faults).toEqual([
    expect.stringContaining(`DATABASE_URL_FILE names a file whose content ${reason}`),
  ])
  expect(faults.join()).not.toContain('secret value')
})

const notRead = 'ACCESS_TOKENS_FILE names a file that cannot be read'

test.each(['latin1', 'utf16le'] as const)(
  'a file with a secret in %s is refused: it would be another secret',
  encoding => {
    const file = fileOf(Buffer.from('\uFEFFof-20-characters-ööö', encoding))

    expect(faultsOf({ ACCESS_TOKENS_FILE: file })).toEqual([
      `${notRead}: The encoded data was not valid for encoding utf-8`,
    ])
  },
)

test('a pipe with a secret is refused, because it could wait forever', () => {
  const pipe = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [pipe])

  expect(faultsOf({ ACCESS_TOKENS_FILE: pipe })).toEqual([`${notRead}: it is not a file`])
})

test.each<[Record<string, string>, string]>([
  [{ ACCESS_TOKENS_FILE: '/no/such/file' }, `${notRead}: no such file or folder`],
  [
    { DATABASE_URL: 'file:a', DATABASE_URL_FILE: 'b' },
    'DATABASE_URL_FILE and DATABASE_URL must not both be set',
  ],
  [{ BASE_URL_FILE: '/run/secrets/a' }, 'BASE_URL_FILE is not read: set BASE_URL'],
])('a file that cannot be used stops the start: %o', (environment, fault) => {
  expect(faultsOf(environment)).toEqual([fault])
})

test('a variable that resembles a setting is named with it, and no other', () => {
  const environment = {
    DATABSE_URL: 'a',
    LOGLEVEL: 'b',
    ACCESS_TOKEN_FILE: '/run/secrets/a',
    CORS_ORIGIN: 'c',
    HOME: '/',
    HOSTS: 'a',
    LOG_LEVEL: 'c',
    LEVEL: 'd',
  }

  expect(misspeltSettings(environment)).toEqual([
    { variable: 'DATABSE_URL', setting: 'DATABASE_URL' },
    { variable: 'LOGLEVEL', setting: 'LOG_LEVEL' },
    { variable: 'ACCESS_TOKEN_FILE', setting: 'ACCESS_TOKENS_FILE' },
    { variable: 'CORS_ORIGIN', setting: 'CORS_ORIGINS' },
  ])
})

test('docs/settings.md has exactly the settings, with their defaults', () => {
  const page = readFileSync(new URL('../../../docs/settings.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` +\| *(.*?) *\|/gm)]
  const defaults = rows.flatMap(([, name = '', text = '']) => {
    const [, value] = /^`([^`]+)`$/.exec(text) ?? []
    return value === undefined ? [] : [[name, value]]
  })
  const variables = new Set<string>()
  const environment = new Proxy<Record<string, string>>(
    {},
    { get: (_, variable) => void variables.add(`${String(variable)}`) },
  )

  readConfig(environment)

  // Any setting is asked for a file with its value.
  const settings = [...variables].filter(name => !name.endsWith('_FILE'))
  expect(rows.map(([, name]) => name).sort()).toEqual(settings.sort())
  expect(defaults.length).toBeGreaterThan(20)
  const withDefaults = { ...provider, ...Object.fromEntries(defaults) }
  expect(readConfig(withDefaults)).toEqual(readConfig(provider))
})
