import pg from 'pg'
import type { ServerOptions } from '../storage.ts'
import { wasRolledBack } from './transaction.ts'

/**
 * A connection to the server or to a pooler such as pgbouncer. Behind a pooler each transaction may use another
 * connection of the server, so settings and prepared statements do not last.
 */
export type Connection = pg.Client &
  AsyncDisposable & {
    readonly isPooled: boolean
    /** Returns `begin` with the settings that the connection cannot keep. */
    begin(mode?: string): string
    /** Settles after the last transaction of `transact`. */
    lastTurn: Promise<unknown>
  }

/**
 * A connection that is opened at first use, and reopened at the next use after it broke. Any number of queries may be
 * in progress. The server handles them in the order sent.
 */
export interface ReconnectingConnection {
  /** The number of uses in progress. */
  readonly inFlight: number
  use<Result>(work: (client: Connection) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/** Between a failure to connect and the next attempt. */
const reconnectAfterMs = 100

/** How much longer the client waits than the server, so that the server times out first and the connection survives. */
const serverHeadStartMs = 500

const int8 = 20

export function createReconnectingConnection(options: ServerOptions): ReconnectingConnection {
  let connection: Promise<Connection> | undefined
  let inFlight = 0

  const connected = () => {
    if (connection === undefined) {
      const attempt = connect(options)
      attempt.then(
        // pg reports every end that was not asked for as an error first.
        client => client.once('error', () => forget(attempt)),
        () => setTimeout(() => forget(attempt), reconnectAfterMs).unref(),
      )
      connection = attempt
    }
    return connection
  }
  const forget = (attempt: Promise<Connection>) => {
    const isCurrent = connection === attempt
    if (isCurrent) connection = undefined
    return isCurrent
  }

  return {
    get inFlight() {
      return inFlight
    },
    async use(work) {
      inFlight++
      try {
        const attempt = connected()
        const client = await attempt
        try {
          return await work(client)
        } catch (error) {
          // It may be broken, or lead to a server that became read-only. Reconnecting finds the writable one.
          if (!wasRolledBack(error) && forget(attempt)) client.end().catch(() => {})
          throw error
        }
      } finally {
        inFlight--
      }
    },
    async close() {
      await connection?.then(
        client => client.end(),
        () => {},
      )
    },
  }
}

/** Connects to all hosts at once and keeps the first writable one, so that a dead host costs no time. */
export async function connect(options: ServerOptions): Promise<Connection> {
  const attempts = options.hosts.map(host => connectTo(host, options))
  try {
    const first = await Promise.any(attempts)
    for (const attempt of attempts) {
      attempt.then(
        client => (client === first ? undefined : client.end()),
        () => {},
      )
    }
    return first
  } catch (cause) {
    const { errors } = cause as AggregateError
    throw new Error([...new Set(errors.map(describe))].join('; '), { cause })
  }
}

async function connectTo(
  host: string,
  { timeoutMs, statementTimeoutMs = timeoutMs }: ServerOptions,
): Promise<Connection> {
  const client = new pg.Client({
    connectionString: host,
    fallback_application_name: 'plant-store',
    connectionTimeoutMillis: timeoutMs,
    query_timeout: statementTimeoutMs + serverHeadStartMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    pipeline: true,
    types: { getTypeParser },
  })
  // Queries in progress reject anyway. Without a listener the process would end.
  client.on('error', () => {})
  try {
    await client.connect()
    // A pooler reports process numbers of its own.
    const { processID } = client as unknown as { processID: number | null }
    const isPooled = `pg_backend_pid() is distinct from ${processID}`
    const { rows } = await client.query<{ read_only: string; is_pooled: boolean }>({
      text: `
        select
          current_setting('transaction_read_only') as read_only,
          ${isPooled} as is_pooled,
          ${settings(statementTimeoutMs, isPooled)}`,
      query_timeout: timeoutMs,
    } as pg.QueryConfig)
    const [session] = rows
    if (session?.read_only !== 'off') throw new Error(`${client.host}:${client.port} does not accept writes`)
    const perTransaction = session.is_pooled ? `; select ${settings(statementTimeoutMs, 'true')}` : ''
    return Object.assign(client, {
      isPooled: session.is_pooled,
      begin: (mode = '') => `begin ${mode}${perTransaction}`,
      lastTurn: Promise.resolve(),
      [Symbol.asyncDispose]: () => client.end(),
    })
  } catch (error) {
    client.end().catch(() => {})
    // pg's message names only an internal detail.
    if (!client.password && /password/.test((error as Error).message)) {
      throw new Error(`${client.host}:${client.port} requires a password, and the URL has none`, {
        cause: error,
      })
    }
    throw error
  }
}

/**
 * With these settings a commit is on disk, and on the synchronous standbys, whatever the server's default. They last
 * only for the transaction if the SQL expression `isLocal` is true.
 */
function settings(statementTimeoutMs: number, isLocal: string): string {
  return `
    set_config('statement_timeout', '${statementTimeoutMs}', ${isLocal}),
    set_config(
      'synchronous_commit',
      case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end,
      ${isLocal}
    )`
}

function getTypeParser(oid: number, format?: 'text' | 'binary') {
  return oid === int8 ? BigInt : pg.types.getTypeParser(oid, format as 'text')
}

/** Node leaves the message empty if a name with several addresses fails. */
function describe(error: Error & { code?: string }): string {
  return error.message || error.code || String(error)
}
