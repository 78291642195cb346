import { availableParallelism } from 'node:os'
import { isatty } from 'node:tty'
import { defaultStoreUrl, messageOf } from '@plant-store/engine'
import { jwtAlgorithms } from '@plant-store/jwt/settings'
import { distance } from 'fastest-levenshtein'
import { readSetting, variablesOf } from './setting.ts'
import {
  algorithmList,
  audienceList,
  clockSkew,
  delay,
  duration,
  host,
  httpUrl,
  integer,
  issuer,
  jwksUrl,
  networkList,
  oneOf,
  optional,
  originList,
  plainUrl,
  share,
  tokenList,
} from './setting-values.ts'
import { bytes, type Parse, storeUrl, walLimit, walLimitDefault } from './units.ts'

const logFormatDefault = isatty(1) ? 'pretty' : 'json'

/** More threads gain little, because they wait for the one writer. */
const httpThreadsDefault =
  process.platform === 'linux' ? Math.min(2, availableParallelism()) : 1

/** How the service runs. See docs/settings.md for each setting. */
export type Config = Readonly<ReturnType<typeof readSettings>>

/** Reads one setting. Its default is parsed like any other text. */
type Read = <Value>(name: string, defaultText: string, parse: Parse<Value>) => Value

function readSettings(read: Read) {
  return {
    host: read('HOST', '127.0.0.1', host),
    /** 0 chooses a free port. */
    port: read('PORT', '3000', integer(0, 65_535)),
    store: {
      url: read('DATABASE_URL', defaultStoreUrl, storeUrl),
      timeoutMs: read('DATABASE_TIMEOUT', '5s', duration),
      readConnectionsMax: read('DATABASE_POOL_MAX', '4', integer(1, 1000)),
      walBytesMax: read('WAL_LIMIT', walLimitDefault, walLimit),
      /** The limit of each thread. */
      queueChangesMax: read('QUEUE_LIMIT', '10000', integer(1, 1_000_000)),
    },
    baseUrl: read('BASE_URL', '', optional(plainUrl)),
    /** Tokens with every scope. */
    accessTokens: read('ACCESS_TOKENS', '', tokenList),
    jwt: {
      issuer: read('JWT_ISSUER', '', optional(issuer)) ?? '',
      audience: read('JWT_AUDIENCE', '', audienceList),
      /** Where the provider publishes its keys, or `undefined` without a provider. */
      jwksUrl: read('JWT_JWKS_URL', '', optional(jwksUrl)),
      algorithms: read('JWT_ALGORITHMS', jwtAlgorithms.join(), algorithmList),
      clockSkewMs: read('JWT_CLOCK_SKEW', '30s', clockSkew),
    },
    corsOrigins: read('CORS_ORIGINS', '', originList),
    logLevel: read(
      'LOG_LEVEL',
      'info',
      oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    ),
    logFormat: read('LOG_FORMAT', logFormatDefault, oneOf('json', 'pretty', 'journal')),
    httpThreads: read('HTTP_THREADS', `${httpThreadsDefault}`, integer(1, 64)),
    /** The limits of a thread. Threads share `heldBytesMax` and `connectionsMax`. */
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
    },
    trustedProxies: read('TRUST_PROXY', '', networkList),
    /** How long `/readyz` fails before the stop begins. */
    shutdownDelayMs: read('SHUTDOWN_DELAY', '0s', delay),
    shutdownTimeoutMs: read('SHUTDOWN_TIMEOUT', '10s', duration),
    /** The variables of OpenTelemetry that we read. Its library reads further ones. */
    traces: {
      endpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT', '', optional(httpUrl)),
      isDisabled: read('OTEL_SDK_DISABLED', 'false', oneOf('true', 'false')),
      exporter: read('OTEL_TRACES_EXPORTER', 'otlp', oneOf('otlp', 'none')),
      sampler: read(
        'OTEL_TRACES_SAMPLER',
        'parentbased_always_on',
        oneOf(
          'always_on',
          'always_off',
          'traceidratio',
          'parentbased_always_on',
          'parentbased_always_off',
          'parentbased_traceidratio',
        ),
      ),
      /** For the samplers of a share of the traces, from 0 to 1. */
      sampledShare: read('OTEL_TRACES_SAMPLER_ARG', '1', share),
    },
  }
}

/**
 * Returns the configuration in the environment.
 *
 * @throws Error with a line for each invalid variable that says what it must be
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const faults: string[] = []
  const config = readSettings((name, defaultText, parse) => {
    try {
      return readSetting(environment, name, parse) ?? parse(defaultText)
    } catch (error) {
      faults.push(messageOf(error))
      // The configuration is not returned.
      return undefined as never
    }
  })
  faults.push(...providerFaults(environment))
  if (faults.length > 0) {
    throw new Error(faults.join('\n'))
  }
  return config
}

const neededForProvider = ['JWT_ISSUER', 'JWT_AUDIENCE', 'JWT_JWKS_URL']
const onlyWithProvider = ['JWT_ALGORITHMS', 'JWT_CLOCK_SKEW']

/** Returns at most one fault of the settings of an identity provider together. */
function providerFaults(environment: NodeJS.ProcessEnv): readonly string[] {
  const missing = neededForProvider.filter(name => !environment[name])
  if (missing.length === 0) {
    return []
  }
  if (missing.length < neededForProvider.length) {
    const together = neededForProvider.join(', ')
    return [`${missing.join(' and ')} must be set too: ${together} belong together`]
  }
  const useless = onlyWithProvider.filter(name => environment[name])
  if (useless.length === 0) {
    return []
  }
  return [`${useless.join(' and ')} must not be set without JWT_ISSUER`]
}

/** Shorter names resemble too many others, as HOST does HOME. */
const misspeltCharsMin = 8
const misspeltEditsMax = 2

/**
 * Returns the variables that are no setting and differ from one in a character or two,
 * each with that setting.
 */
export function misspeltSettings(environment: NodeJS.ProcessEnv) {
  const settings: string[] = []
  readSettings((name, defaultText, parse) => {
    settings.push(...variablesOf(name))
    return parse(defaultText)
  })
  const others = Object.keys(environment).filter(name => !settings.includes(name))
  return others.flatMap(variable => {
    const setting = settings.find(
      name =>
        name.length >= misspeltCharsMin && distance(variable, name) <= misspeltEditsMax,
    )
    return setting === undefined ? [] : [{ variable, setting }]
  })
}
