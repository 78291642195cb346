import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import pg from 'pg'
import { parseIntoClientConfig } from 'pg-connection-string'
import { messageOf } from '../errors.ts'
import type { WarningListener } from './server-warnings.ts'

/**
 * The routine of PostgreSQL that waits for the synchronous standbys before a commit is
 * answered.
 */
const standbyWait = 'SyncRepWaitForLSN'

/** Notices below a warning have this code. The sessions of a store leave them out. */
const successCode = '00000'

/** The routine of PostgreSQL that refuses a statement for which rows would be hidden. */
const rowSecurityCheck = 'check_enable_rls'

/**
 * A connection to one host, which one transaction uses until it is released. If it cannot
 * connect, at whatever step, it destroys its socket: pg only ends its own side, or leaves
 * the socket open if it cannot set up TLS.
 */
export class Connection extends pg.Client implements AsyncDisposable {
  /** Given by the pool. With an error or `true`, it ends the connection. */
  declare release: pg.PoolClient['release']
  /** The socket to the server, below TLS. */
  readonly #socket: Socket
  /**
   * Whether the server stopped waiting for its standby, because an operator told it so.
   * It reports such a commit as a success. The connection is not used again.
   */
  #isUnconfirmed = false
  /** Why the connection ended. pg does not tell it to the queries that come later. */
  #endReason: Error | undefined

  constructor(
    { connectionString = '', ...options }: pg.ClientConfig,
    onWarning: WarningListener,
  ) {
    const socket = new Socket()
    super({ ...options, ...configOf(connectionString, socket), stream: () => socket })
    this.#socket = socket
    const destroy = () => void socket.destroy()
    this.connection.on('error', destroy)
    this.connection.on('errorMessage', destroy)
    this.once('connect', () => this.connection.off('errorMessage', destroy))
    const reading = this.ssl ? 'sslconnect' : 'connect'
    this.connection.once(reading, () => catchThrown(this.connection.stream))

    // It listens from the start, because the server may warn while it lets a client in.
    this.on('notice', ({ code, routine = '', message = '' }) => {
      if (routine === standbyWait) {
        this.#isUnconfirmed = true
      } else if (code !== successCode) {
        onWarning(message, routine)
      }
    })
    // Queries in progress reject anyway. Without a listener the process would end.
    this.on('error', error => {
      this.#endReason ??= error
    })
  }

  /** Makes settings for the session, as the last step of connecting. */
  async prepare(settings: string): Promise<void> {
    try {
      await this.query(settings)
    } catch (error) {
      this.#socket.destroy()
      throw error
    }
  }

  /** @throws Error with the server's reason if it ended the connection */
  async ask<Row extends pg.QueryResultRow>(
    text: string,
    values: unknown[] = [],
  ): Promise<pg.QueryResult<Row>> {
    const [result] = await this.send([{ text, values }])
    assert(result !== undefined, 'a query has a result')
    return result
  }

  /** Resolves to the row of a query that has one. Throws like {@link ask}. */
  async askRow<Row extends pg.QueryResultRow>(
    text: string,
    values?: unknown[],
  ): Promise<Row> {
    const { rows } = await this.ask<Row>(text, values)
    const [row] = rows
    assert(row !== undefined, 'the query returns one row')
    return row
  }

  /** Sends queries without waiting for answers in between. Throws like {@link ask}. */
  async send(
    queries: readonly (string | pg.QueryConfig)[],
  ): Promise<readonly pg.QueryResult[]> {
    const answers = queries.map(query => this.query(query))
    // Wait for all answers, so that no query is in progress when this method throws.
    await Promise.allSettled(answers)
    try {
      return await Promise.all(answers)
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) {
        throw this.#endReason ?? error
      }
      if (error.routine !== rowSecurityCheck) {
        throw error
      }
      const remedy = error.hint ?? 'its role must own the table, or have BYPASSRLS'
      throw new Error(`${error.message}: ${remedy}`, { cause: error })
    }
  }

  /** @throws Error if the transaction was committed, but is not on the standby */
  refuseUnconfirmed(): void {
    if (this.#isUnconfirmed) {
      throw new Error('the server did not wait for its standby')
    }
  }

  /** Ends the connection, and takes a transaction back that was not committed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.release(true)
  }
}

/**
 * Lets a stream fail with what its reader throws. pg throws at a kind of authentication
 * that it does not know, such as GSS, and that would end the process.
 */
function catchThrown(stream: Duplex) {
  const readers = stream.listeners('data')
  stream.removeAllListeners('data')
  for (const read of readers) {
    stream.on('data', chunk => {
      try {
        read(chunk)
      } catch (error) {
        stream.destroy(error as Error)
      }
    })
  }
}

/**
 * Reads the URL of a host, and the files that it names. It does so for each connection,
 * because certificates are renewed. If a file cannot be read, the socket fails with the
 * reason: the pool calls the constructor where an error would end the process.
 */
function configOf(url: string, socket: Socket): pg.ClientConfig {
  try {
    const config = parseIntoClientConfig(url)
    // pg-connection-string leaves a # in the name of a database encoded.
    const { dbname } = config as { readonly dbname?: string }
    return dbname === undefined ? config : { ...config, database: dbname }
  } catch (cause) {
    const fault = new Error(messageOf(cause), { cause })
    socket.connect = () => socket.destroy(fault)
    return {}
  }
}
