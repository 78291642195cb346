import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { defaultServerLimits } from '@plant-store/http/server'
import { describe, expect, test } from 'vitest'
import { misspeltSettings, readConfig } from '../src/config.ts'

/** Returns the lines of the error, or none if the configuration is accepted. */
function faultsOf(environment: Record<string, string>): string[] {
  try {
    readConfig(environment)
  } catch (error) {
    return `${error}`.replace(/^Error: /, '').split('\n')
  }
  return []
}

function wrongVariables(environment: Record<string, string>): string[] {
  return faultsOf(environment).map(line => line.replace(/ .*/, ''))
}

const page = readFileSync(join(import.meta.dirname, '../../../docs/settings.md'), 'utf8')
const rowPattern = /^\| `([A-Z_]+)` +\| *(.*?) *\|/gm
const rows = Array.from(page.matchAll(rowPattern), ([, name = '', value = '']) => ({
  name,
  value,
}))

const variables = new Set<string>()
const recordReads: ProxyHandler<Record<string, string>> = {
  get(_, variable) {
    const name = variable.toString()
    // Any setting is asked for a file with its value.
    if (!name.endsWith('_FILE')) {
      variables.add(name)
    }
  },
}
readConfig(new Proxy({}, recordReads))

const defaults = readConfig({})

test('the default limits of the program are those of the package', () => {
  expect(defaultServerLimits).toMatchObject(defaults.serverLimits)
})

test('two threads serve on Linux with two processors, elsewhere one', () => {
  const threads = process.platform === 'linux' ? Math.min(2, availableParallelism()) : 1
  expect(defaults.httpThreads).toBe(threads)
})

test('an empty variable counts as unset, and an unknown one is ignored', () => {
  const emptyVariables = [...variables].map(name => [name, ''])

  expect(readConfig(Object.fromEntries(emptyVariables))).toEqual(defaults)
  expect(readConfig({ PATH: '/bin', port: 'x', PLANTS: '1' })).toEqual(defaults)
})

test.each([
  ['HOST', '[::1]', { host: '::1' }],
  ['PORT', '80', { port: 80 }],
  ['BASE_URL', 'https://example.org', { baseUrl: 'https://example.org/' }],
  [
    'BASE_URL',
    'http://[::1]:8080/a-b_c.d~e/',
    { baseUrl: 'http://[::1]:8080/a-b_c.d~e/' },
  ],
  [
    'CORS_ORIGINS',
    'http://localhost:8080 , https://[::1]:8443',
    { corsOrigins: ['http://localhost:8080', 'https://[::1]:8443'] },
  ],
  [
    'CORS_ORIGINS',
    'capacitor://localhost,tauri://localhost,chrome-extension://ab-1,app://a:80',
    {
      corsOrigins: [
        'capacitor://localhost',
        'tauri://localhost',
        'chrome-extension://ab-1',
        'app://a:80',
      ],
    },
  ],
  [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'http://localhost:4318',
    { traces: { ...defaults.traces, endpoint: 'http://localhost:4318/' } },
  ],
  [
    'ACCESS_TOKENS',
    'of-20-characters/+==, and.of~more_than-20.0',
    { accessTokens: ['of-20-characters/+==', 'and.of~more_than-20.0'] },
  ],
  [
    'TRUST_PROXY',
    '127.0.0.1, 10.0.0.0/8,fd00::/8, ::1',
    { trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8', '::1'] },
  ],
  ['SHUTDOWN_DELAY', '15s', { shutdownDelayMs: 15_000 }],
  ['SHUTDOWN_TIMEOUT', '500ms', { shutdownTimeoutMs: 500 }],
  ['SHUTDOWN_TIMEOUT', '5s', { shutdownTimeoutMs: 5_000 }],
  ['SHUTDOWN_TIMEOUT', '5min', { shutdownTimeoutMs: 300_000 }],
  ['SHUTDOWN_TIMEOUT', '5m', { shutdownTimeoutMs: 300_000 }],
  ['SHUTDOWN_TIMEOUT', '24h', { shutdownTimeoutMs: 86_400_000 }],
  ['BODY_LIMIT', '64', { serverLimits: { ...defaults.serverLimits, bodyBytesMax: 64 } }],
  [
    'BODY_LIMIT',
    '64KiB',
    { serverLimits: { ...defaults.serverLimits, bodyBytesMax: 65_536 } },
  ],
  [
    'BODY_LIMIT',
    '64MiB',
    { serverLimits: { ...defaults.serverLimits, bodyBytesMax: 2 ** 26 } },
  ],
  [
    'OTEL_TRACES_SAMPLER_ARG',
    '0.25',
    { traces: { ...defaults.traces, sampledShare: 0.25 } },
  ],
])('a right value is taken: %s=%s', (name, value, changed) => {
  expect(readConfig({ [name]: value })).toEqual({ ...defaults, ...changed })
})

type SettingValues = Readonly<Record<string, readonly string[]>>

/** Returns a row for each value, with the name of its setting. */
function eachValueOf(settings: SettingValues): string[][] {
  const rowsByName = Object.entries(settings).map(([name, values]) =>
    values.map(value => [name, value]),
  )
  return rowsByName.flat()
}

const identityProvider = {
  JWT_ISSUER: 'https://identity.example/',
  JWT_AUDIENCE: 'plants, https://plants.example',
  JWT_JWKS_URL: 'https://identity.example/jwks',
}

test('an identity provider has an issuer, audiences and the URL of its keys', () => {
  expect(readConfig(identityProvider).jwt).toEqual({
    issuer: 'https://identity.example/',
    audience: ['plants', 'https://plants.example'],
    jwksUrl: 'https://identity.example/jwks',
    algorithms: expect.arrayContaining(['RS256', 'ES256', 'EdDSA']),
    clockSkewMs: 30_000,
  })
  const more = { JWT_ALGORITHMS: 'RS256, ES256', JWT_CLOCK_SKEW: '5min' }
  const expected = { algorithms: ['RS256', 'ES256'], clockSkewMs: 300_000 }
  expect(readConfig({ ...identityProvider, ...more }).jwt).toMatchObject(expected)
  const local = { ...identityProvider, JWT_JWKS_URL: 'http://localhost:8080/jwks' }
  expect(readConfig(local).jwt?.jwksUrl).toBe('http://localhost:8080/jwks')
})

test.each<[string, object, string]>([
  ['no issuer', { JWT_ISSUER: '' }, 'JWT_ISSUER must be set too: '],
  ['no audience', { JWT_AUDIENCE: '' }, 'JWT_AUDIENCE must be set too: '],
  [
    'no keys, and no issuer',
    { JWT_JWKS_URL: '', JWT_ISSUER: '' },
    'JWT_ISSUER and JWT_JWKS_URL must be set too: ',
  ],
])('an identity provider with %s is refused in one line', (_, environment, fault) => {
  expect(faultsOf({ ...identityProvider, ...environment })).toEqual([
    `${fault}JWT_ISSUER, JWT_AUDIENCE, JWT_JWKS_URL belong together`,
  ])
})

test('what is for an identity provider alone is refused without one', () => {
  expect(faultsOf({ JWT_CLOCK_SKEW: '10s', JWT_ALGORITHMS: 'RS256' })).toEqual([
    'JWT_ALGORITHMS and JWT_CLOCK_SKEW must not be set without JWT_ISSUER',
  ])
})

test.each([
  ['JWT_JWKS_URL', 'http://identity.example/jwks'],
  ['JWT_AUDIENCE', 'a,,b'],
  ['JWT_ALGORITHMS', 'RS256,none'],
  ['JWT_CLOCK_SKEW', '301s'],
])('%s=%s is refused, with the variable named', (name, value) => {
  expect(wrongVariables({ ...identityProvider, [name]: value })).toEqual([name])
})

const wrongValues: SettingValues = {
  PORT: ['65536', '-1', '80.5', '0x50', '1e3', 'http', '99999999999', '80constructor'],
  DATABASE_URL: ['plants.db', 'file:', 'http://a/b', 'postgres:plants'],
  BASE_URL: [
    'example.org',
    'ftp://example.org',
    '/store',
    'http://',
    'http://a/?b=c',
    'http://a/#b',
    'http://a/?',
    'http://a/#',
    'http://a/b c',
    'http://a/b%20c',
    'http://a/:b',
    'http://a/b:c',
    'http://a/*',
    'http://a/b*/c',
    'http://a/(b)',
    'http://a/ä',
    'http://*:3000/',
    'http://user:pass@a/',
    'http://:pass@a/',
  ],
  CORS_ORIGINS: [
    '*',
    'null',
    'example.org',
    'https://example.org/',
    'https://EXAMPLE.org',
    'https://example.org:443',
    'https://*.example.org',
    'capacitor://localhost/',
    'tauri://user@localhost',
    'file://',
    'https://a,,',
  ],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['localhost:4318', 'grpc://localhost:4317', 'x'],
  OTEL_SDK_DISABLED: ['1', 'TRUE'],
  OTEL_TRACES_EXPORTER: ['console', 'zipkin'],
  OTEL_TRACES_SAMPLER: ['jaeger_remote', 'always'],
  OTEL_TRACES_SAMPLER_ARG: ['-1', '1.5', '50%', '2'],
  ACCESS_TOKENS: [
    'of-19-characters-00',
    'of-20-characters 000',
    'of-20-characters-äää',
    'of-20-characters-"000',
    'of-20-characters=000',
    'of-20-characters-000,,of-20-characters-000',
    ',',
    'of-20-characters-000,',
  ],
  DATABASE_TIMEOUT: ['0s', '5', 'long'],
  DATABASE_POOL_MAX: ['0', '1001', 'all'],
  LOG_LEVEL: ['verbose', 'INFO', '30'],
  LOG_FORMAT: ['text', 'JSON'],
  HTTP_THREADS: ['0', '65', '-1', 'auto', '1.5'],
  BODY_LIMIT: [
    '0',
    '-1',
    '1.5MiB',
    '1MB',
    '1kib',
    '65MiB',
    'MiB',
    '1 MiB',
    '1GiB',
    '1toString',
  ],
  WAL_LIMIT: ['127MiB', '1099511627777', '0'],
  PAGE_LIMIT: ['0', '65MiB', 'long'],
  HELD_LIMIT: ['0', '4097MiB', 'all'],
  HEADER_LIMIT: ['1023', '0', '2MiB', 'x'],
  REQUEST_TIMEOUT: [
    '0s',
    '0ms',
    '30',
    '30mins',
    '-1s',
    '1.5s',
    '86401s',
    '25h',
    's',
    'm',
    '5valueOf',
  ],
  HEADERS_TIMEOUT: ['0s', '10'],
  KEEP_ALIVE_TIMEOUT: ['0s', '10'],
  INACTIVITY_TIMEOUT: ['0s', '10'],
  MAX_CONNECTIONS: ['0', '1000001', 'many'],
  TRUST_PROXY: [
    'true',
    '1',
    'proxy',
    '10.0.0.0/33',
    '10.0.0/8',
    '::/129',
    '10.0.0.1,',
    '10.0.0.0/',
    '0.0.0.0/0',
    '::/0',
  ],
  QUEUE_LIMIT: ['0', '1000001', 'many'],
  SHUTDOWN_DELAY: ['0', '25h', 'long'],
  SHUTDOWN_TIMEOUT: ['0s', '10', 'never'],
}

test.each(eachValueOf(wrongValues))(
  'a wrong value is refused, with the variable named: %s=%s',
  (name, value) => {
    expect(faultsOf({ [name]: value })).toEqual([
      expect.stringMatching(`^${name} must be .{10,}$`),
    ])
  },
)

/**
 * A right value of each setting, without which it would be refused for another reason.
 */
function rightValueOf(name: string): string {
  const defaultRow = rows.find(row => row.name === name)
  const values: Record<string, string> = {
    ...identityProvider,
    LOG_FORMAT: 'json',
    HTTP_THREADS: '1',
    BASE_URL: 'https://plants.example/',
    ACCESS_TOKENS: 'of-20-characters-000',
    CORS_ORIGINS: 'https://plants.example',
    TRUST_PROXY: '127.0.0.1',
    JWT_ALGORITHMS: 'RS256',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318',
  }
  return values[name] ?? withoutQuotes(defaultRow?.value ?? '')
}

/** Returns a value of the page without the quotes around it. */
function withoutQuotes(value: string): string {
  return value.slice(1, -1)
}

const blanks: Readonly<Record<string, (right: string) => string>> = {
  'the line end of Windows': right => `${right}\r`,
  'a line end': right => `${right}\n`,
  'a blank at its start': right => ` ${right}`,
  'a tab at its start': right => `\t${right}`,
  'a no-break space': right => `${right}\u00a0`,
  'a byte order mark': right => `\ufeff${right}`,
  'a zero-width space': right => `${right}\u200b`,
  'nothing but a blank': () => ' ',
}

test.each([...variables])('%s is refused with blanks around it', name => {
  const right = rightValueOf(name)
  const faultsWith = (value: string) => faultsOf({ ...identityProvider, [name]: value })

  expect(faultsWith(right)).toEqual([])
  for (const [why, withBlank] of Object.entries(blanks)) {
    expect(faultsWith(withBlank(right)), why).toEqual([
      `${name} must not begin or end with white space, such as the line end of a file from Windows`,
    ])
  }
})

/** Returns the path of a new file. */
function fileOf(content: string): string {
  const file = join(temporaryFolder(), 'secret')
  writeFileSync(file, content)
  return file
}

test.each(['', '\n', '\r\n'])('secrets may come from files that end with %j', end => {
  const environment = {
    DATABASE_URL_FILE: fileOf(`postgres://a:b@c/d${end}`),
    ACCESS_TOKENS_FILE: fileOf(`of-20-characters-000, of-20-characters-001${end}`),
    DATABASE_URL: '',
  }

  const config = readConfig(environment)

  expect(config.databaseUrl).toBe('postgres://a:b@c/d')
  expect(config.accessTokens).toEqual(['of-20-characters-000', 'of-20-characters-001'])
})

test.each([
  ['is empty', '', 'must not be empty'],
  ['has only a line end', '\n', 'must not be empty'],
  ['has two line ends', 'file:a\n\n', 'must not begin or end with white space'],
  ['has a blank at its end', 'file:a ', 'must not begin or end with white space'],
  ['has another value', 'secret value', 'must be file: '],
])('a file of DATABASE_URL that %s is refused by name', (_, content, reason) => {
  const faults = faultsOf({ DATABASE_URL_FILE: fileOf(content) })

  expect(faults).toEqual([
    expect.stringContaining(`DATABASE_URL_FILE names a file whose content ${reason}`),
  ])
  expect(faults.join()).not.toContain('secret value')
})

test.each([
  ['that is missing', () => '/no/such/file', 'no such file or folder'],
  ['that is a folder', () => tmpdir(), 'it is a folder'],
])('a file of ACCESS_TOKENS %s is refused by name', (_, path, reason) => {
  expect(faultsOf({ ACCESS_TOKENS_FILE: path() })).toEqual([
    `ACCESS_TOKENS_FILE names a file that cannot be read: ${reason}`,
  ])
})

test('a secret that comes twice is refused, with both variables named', () => {
  const environment = { DATABASE_URL: 'file:a', DATABASE_URL_FILE: fileOf('file:b') }

  expect(faultsOf(environment)).toEqual([
    'DATABASE_URL_FILE and DATABASE_URL must not both be set',
  ])
})

const withoutFile = [...variables].filter(
  name => !['DATABASE_URL', 'ACCESS_TOKENS'].includes(name),
)

test('no file is read for another setting, and the start says so', () => {
  for (const name of withoutFile) {
    const faults = faultsOf({ [`${name}_FILE`]: '/run/secrets/a' })
    expect(faults, name).toEqual([`${name}_FILE is not read: set ${name}`])
  }
})

test.each([
  ['JWT_ISSUER', '"https://identity.example/"'],
  ['JWT_ISSUER', "'https://identity.example/'"],
  ['JWT_ISSUER', 'https://identity.example/ https://other.example/'],
  ['JWT_ISSUER', 'https://identity.example/\nhttps://other.example/'],
  ['JWT_AUDIENCE', '"plants"'],
  ['JWT_AUDIENCE', "'plants'"],
  ['JWT_AUDIENCE', 'plants shop'],
  ['JWT_AUDIENCE', 'plants,"shop"'],
])('a quotation mark or blank stops the start: %s=%s', (name, value) => {
  expect(faultsOf({ ...identityProvider, [name]: value })).toEqual([
    expect.stringMatching(`^${name} must be .*without quotation marks and white space$`),
  ])
})

test('a variable that resembles a setting is named with it, and no other', () => {
  const environment = {
    DATABSE_URL: 'a',
    LOGLEVEL: 'b',
    ACCESS_TOKEN_FILE: '/run/secrets/a',
    TRUST_PROXYS: '',
    CORS_ORIGIN: 'c',
    HOME: '/',
    HOSTS: 'a',
    PATH: 'b',
    LOG_LEVEL: 'c',
    LEVEL: 'd',
    npm_config_port: '1',
  }

  expect(misspeltSettings(environment)).toEqual([
    { variable: 'DATABSE_URL', setting: 'DATABASE_URL' },
    { variable: 'LOGLEVEL', setting: 'LOG_LEVEL' },
    { variable: 'ACCESS_TOKEN_FILE', setting: 'ACCESS_TOKENS_FILE' },
    { variable: 'TRUST_PROXYS', setting: 'TRUST_PROXY' },
    { variable: 'CORS_ORIGIN', setting: 'CORS_ORIGINS' },
  ])
})

test('a refused token is not repeated in the message, which a log may keep', () => {
  expect(faultsOf({ ACCESS_TOKENS: 'secret value' }).join()).not.toContain('secret')
  expect(faultsOf({ BASE_URL: 'http://user:secret@a/' }).join()).not.toContain('secret')
})

describe('the table in docs/settings.md', () => {
  test('names exactly the variables that are read', () => {
    expect(variables.size).toBeGreaterThan(20)
    const names = rows.map(({ name }) => name)
    expect(names.sort()).toEqual([...variables].sort())
  })

  test.each(rows.filter(({ value }) => /^`[^`]+`$/.test(value)))(
    'gives the default of $name',
    ({ name, value }) => {
      const environment = { ...identityProvider, [name]: withoutQuotes(value) }
      expect(readConfig(environment)).toEqual(readConfig(identityProvider))
    },
  )
})
