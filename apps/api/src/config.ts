import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { isatty } from 'node:tty'
import { isBearerToken } from '@plant-store/access'
import type { ServerLimits } from '@plant-store/http/server'
import { type JwtAlgorithm, jwtAlgorithms, parseJwksUrl } from '@plant-store/jwt/settings'
import { defaultStoreUrl, parseStoreUrl } from '@plant-store/persistence'
import { distance } from 'fastest-levenshtein'
import ipaddr from 'ipaddr.js'
import { unitMs } from './units.ts'

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

const logFormats = ['json', 'pretty', 'journal'] as const
const logFormatDefault = isatty(1) ? 'pretty' : 'json'

/** More threads gain little: they wait for the one writer. */
const httpThreadsDefault =
  process.platform === 'linux' ? Math.min(2, availableParallelism()) : 1

type Read = <Value>(
  name: string,
  fallback: string,
  parse: (text: string) => Value,
) => Value

const readSettings = (read: Read) => ({
  // URLs write an IPv6 address in brackets.
  host: read('HOST', '127.0.0.1', text => text.replace(/^\[(.*)\]$/, '$1')),
  port: read('PORT', '3000', integer(0, 65_535)),
  databaseUrl: read('DATABASE_URL', defaultStoreUrl, storeUrl),
  databaseTimeoutMs: read('DATABASE_TIMEOUT', '5s', duration),
  databasePoolMax: read('DATABASE_POOL_MAX', '4', integer(1, 1000)),
  baseUrl: read('BASE_URL', '', optional(plainUrl)),
  accessTokens: read('ACCESS_TOKENS', '', tokenList),
  jwt: {
    issuer: read('JWT_ISSUER', '', text => text),
    audience: read('JWT_AUDIENCE', '', audienceList),
    jwksUrl: read('JWT_JWKS_URL', '', optional(jwksUrl)),
    algorithms: read('JWT_ALGORITHMS', jwtAlgorithms.join(), algorithmList),
    clockSkewMs: read('JWT_CLOCK_SKEW', '30s', clockSkew),
  },
  corsOrigins: read('CORS_ORIGINS', '', originList),
  logLevel: read('LOG_LEVEL', 'info', oneOf(logLevels)),
  logFormat: read('LOG_FORMAT', logFormatDefault, oneOf(logFormats)),
  httpThreads: read('HTTP_THREADS', `${httpThreadsDefault}`, integer(1, 64)),
  serverLimits: {
    bodyBytesMax: read('BODY_LIMIT', '1MiB', bytes(1, 2 ** 26)),
    headerBytesMax: read('HEADER_LIMIT', '16KiB', bytes(1024, 2 ** 20)),
    pageTextBytesMax: read('PAGE_LIMIT', '2MiB', bytes(1, 2 ** 26)),
    heldBytesMax: read('HELD_LIMIT', '48MiB', bytes(1, 2 ** 32)),
    requestTimeoutMs: read('REQUEST_TIMEOUT', '30s', duration),
    headersTimeoutMs: read('HEADERS_TIMEOUT', '10s', duration),
    keepAliveTimeoutMs: read('KEEP_ALIVE_TIMEOUT', '72s', duration),
    inactivityTimeoutMs: read('INACTIVITY_TIMEOUT', '60s', duration),
    connectionsMax: read('MAX_CONNECTIONS', '1000', integer(1, 1_000_000)),
  } satisfies Omit<ServerLimits, 'batchRequestDrainMs'>,
  trustedProxies: read('TRUST_PROXY', '', networkList),
  queueChangesMax: read('QUEUE_LIMIT', '10000', integer(1, 1_000_000)),
  shutdownTimeoutMs: read('SHUTDOWN_TIMEOUT', '10s', duration),
  tracesEndpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT', '', optional(httpUrl)),
})

/** `jwksUrl` of `jwt` is undefined without an identity provider. */
export type Config = Readonly<ReturnType<typeof readSettings>>

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Returns the configuration in the environment.
 *
 * @throws Error with a line for each invalid variable that says what it must be
 */
export function readConfig(environment: Environment): Config {
  const faults: string[] = []
  const config = readSettings((name, fallback, parse) => {
    try {
      // Compose files and shells clear a variable by setting it to the empty string.
      return parse(environment[name] || fallback)
    } catch (error) {
      faults.push(`${name} ${(error as Error).message}`)
      return undefined as never
    }
  })
  const missing = jwtTogether.filter(name => !environment[name])
  const useless = missing.length === 0 ? [] : jwtAlone.filter(name => environment[name])
  if (missing.length > 0 && missing.length < jwtTogether.length) {
    faults.push(
      `${missing.join(' and ')} must be set too: ${jwtTogether.join(', ')} belong together`,
    )
  } else if (useless.length > 0) {
    faults.push(`${useless.join(' and ')} must not be set without JWT_ISSUER`)
  }
  if (faults.length > 0) {
    throw new Error(faults.join('\n'))
  }
  return config
}

const jwtTogether = ['JWT_ISSUER', 'JWT_AUDIENCE', 'JWT_JWKS_URL']
const jwtAlone = ['JWT_ALGORITHMS', 'JWT_CLOCK_SKEW']

/** Shorter names resemble too many others, as HOST does HOME. */
const misspeltLengthMin = 8
const misspeltEditsMax = 2

/** Returns the variables that are no setting and differ from one in a character or two, each with that setting. */
export function misspeltSettings(
  environment: Environment,
): { variable: string; setting: string }[] {
  const names: string[] = []
  readSettings((name, fallback, parse) => {
    names.push(name)
    return parse(fallback)
  })
  const longNames = names.filter(({ length }) => length >= misspeltLengthMin)
  const others = Object.keys(environment).filter(name => !names.includes(name))
  return others.flatMap(variable => {
    const setting = longNames.find(name => distance(variable, name) <= misspeltEditsMax)
    return setting === undefined ? [] : [{ variable, setting }]
  })
}

const optional =
  <Value>(parse: (text: string) => Value) =>
  (text: string) =>
    text === '' ? undefined : parse(text)

const amount =
  (
    units: Readonly<Record<string, number>>,
    [min, max]: readonly [number, number],
    what: string,
  ) =>
  (text: string) => {
    const [, digits = 'none', unit = ''] = /^(\d{1,10})([a-zA-Z]*)$/.exec(text) ?? []
    const value = Number(digits) * (units[unit] ?? Number.NaN)
    if (!(value >= min && value <= max)) {
      throw new Error(`must be ${what}`)
    }
    return value
  }

const integer = (min: number, max: number) =>
  amount({ '': 1 }, [min, max], `an integer from ${min} to ${max}`)

const bytes = (min: number, max: number) => {
  const what = `a number of bytes from ${min} to ${max}, such as 65536, 64KiB or 1MiB`
  return amount({ '': 1, KiB: 2 ** 10, MiB: 2 ** 20 }, [min, max], what)
}

const timeUnits = { ...unitMs, m: unitMs.min }
const duration = amount(
  timeUnits,
  [1, unitMs.d],
  'a time of at most a day, such as 500ms, 30s, 5min or 1h',
)
/** More would make the expiry of a token meaningless. */
const clockSkew = amount(timeUnits, [1, 5 * unitMs.min], 'a time of at most 5min')

function oneOf<Word extends string>(words: readonly Word[]) {
  return (text: string) => {
    const word = words.find(each => each === text)
    if (word === undefined) {
      throw new Error(`must be one of ${words.join(', ')}`)
    }
    return word
  }
}

const httpUrl = (text: string) => {
  const url = URL.parse(text)
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    /[?#]/.test(text) ||
    url.username ||
    url.password
  ) {
    throw new Error('must be an http or https URL without query, fragment or credentials')
  }
  return url.href
}

/** The router interprets some other characters, and others have several spellings. */
const plainUrl = (text: string) => {
  const url = httpUrl(text)
  if (!/^https?:\/\/[^/*]*[\w\-.~/]*$/.test(url)) {
    throw new Error(
      'must be an http or https URL whose path has only letters, digits and - . _ ~ /',
    )
  }
  return url
}

const storeUrl = (text: string) => {
  parseStoreUrl(text)
  return text
}

const jwksUrl = (text: string) => parseJwksUrl(text).href

const listOf = (what: string, isValid: (item: string) => boolean) => (text: string) => {
  const items = text === '' ? [] : text.split(',').map(item => item.trim())
  if (!items.every(isValid)) {
    throw new Error(`must be ${what}`)
  }
  return items
}

const networkList = listOf(
  'addresses or networks separated by commas, such as 127.0.0.1 or 10.0.0.0/8',
  text =>
    isIP(text) !== 0 ||
    // A network of all addresses would let every client choose its own.
    ((ipaddr.IPv4.isValidCIDRFourPartDecimal(text) || ipaddr.IPv6.isValidCIDR(text)) &&
      !/\/0+$/.test(text)),
)

const originList = listOf(
  'origins separated by commas, such as https://plants.example or http://localhost:8080, without a path',
  // Origins are compared as text, so they must have the form that browsers send.
  text => /^https?:/.test(text) && URL.parse(text)?.origin === text,
)

/** Nothing slows down a client that guesses tokens. */
const tokenCharsMin = 20

const tokenList = listOf(
  `tokens separated by commas, each of at least ${tokenCharsMin} letters, digits and - . _ ~ + / = (RFC 6750), such as those of openssl rand -hex 32`,
  text => isBearerToken(text) && text.length >= tokenCharsMin,
)

const audienceList = listOf('audiences separated by commas', text => text !== '')

const algorithmList = (text: string) =>
  listOf(`some of ${jwtAlgorithms.join(', ')}, separated by commas`, item =>
    jwtAlgorithms.includes(item as JwtAlgorithm),
  )(text) as JwtAlgorithm[]
