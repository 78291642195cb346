import pg from 'pg'
import type { ServerOptions } from '../storage.ts'
import { wasRolledBack } from './transaction.ts'

/**
 * A connection to the server, or to a pooler before it, such as pgbouncer. There each transaction may be on another of
 * the server's connections, so neither settings nor prepared statements last from one to the next.
 */
export type Connection = pg.Client &
  AsyncDisposable & {
    readonly isPooled: boolean
    /** Returns `begin`, and the settings that the connection cannot keep. */
    begin(mode?: string): string
    /** Settles when the last transaction of `transact` is over. */
    lastTurn: Promise<unknown>
  }

/**
 * A connection that is made at the first use, and again at the next use after it broke. Any number of queries may be
 * under way on it; the server takes them in the order they were sent.
 */
export interface ReconnectingConnection {
  /** How many uses have not ended. */
  readonly inFlight: number
  use<Result>(work: (client: Connection) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/** From a failure to connect until the next attempt. */
const reconnectAfterMs = 100

/** What the client waits longer than the server, so that the server gives up first and the connection stays good. */
const serverHeadStartMs = 500

const int8 = 20

export function createReconnectingConnection(options: ServerOptions): ReconnectingConnection {
  let connection: Promise<Connection> | undefined
  let inFlight = 0

  const connected = () => {
    if (connection === undefined) {
      const attempt = connect(options)
      attempt.then(
        client => client.once('error', () => forget(attempt)).once('end', () => forget(attempt)),
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
          // It may be broken, or lead to a server that no longer takes writes: reconnecting finds the one that does.
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

/** Connects to all hosts at once and keeps the first that takes writes, so that a dead one costs no time. */
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
  // Queries under way reject all the same; without a listener the process would end.
  client.on('error', () => {})
  try {
    await client.connect()
    // A pooler gives out process numbers of its own.
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
    // pg's message names only what its own code lacks.
    if (!client.password && /password/.test((error as Error).message)) {
      throw new Error(`${client.host}:${client.port} requires a password, and the URL has none`, {
        cause: error,
      })
    }
    throw error
  }
}

/**
 * With these, an answer means that the change is on disk (and on the synchronous standbys), whatever the server's
 * default is. They last for the transaction only where `isLocal`, an expression in SQL, is true.
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

/** Node gives an empty message to the failure of a name that has several addresses. */
function describe(error: Error & { code?: string }): string {
  return error.message || error.code || String(error)
}
