import type pg from 'pg'
import type { PostgresOptions } from '../types.ts'
import { Connection } from './connection.ts'
import { wasRolledBack } from './retry.ts'
import type { WarningListener } from './server-warnings.ts'
import { patienceQuery, settingsQuery } from './session-settings.ts'
import { WritableHost } from './writable-host.ts'

/** Connections to the host that accepts writes. */
export class ConnectionPool implements AsyncDisposable {
  readonly #writable: WritableHost
  /**
   * The SQL that a transaction begins with, if it makes settings. Behind a pooler by
   * transaction, neither settings nor prepared statements outlive a transaction.
   */
  readonly #settings: string | undefined

  constructor(
    options: PostgresOptions,
    connectionsMax: number,
    onWarning?: WarningListener,
  ) {
    const { poolMode, timeoutMs, statementTimeoutMs = timeoutMs, schema } = options
    this.#writable = new WritableHost(options, connectionsMax, onWarning)
    this.#settings =
      poolMode === 'transaction'
        ? settingsQuery({ statementTimeoutMs, schema }, 'transaction')
        : undefined
  }

  /**
   * Runs queries in one transaction, and resolves to the result of each. Reads take one
   * round trip. Several queries take two, and behind a pooler a single one does, too. If
   * it rejects, the transaction may have been committed, unless {@link wasRolledBack}.
   *
   * @throws Error also if the server has committed, but stopped waiting for its standby
   */
  async run(
    queries: readonly pg.QueryConfig[],
    isReading = false,
  ): Promise<readonly pg.QueryResult[]> {
    const connection = await this.#connect()
    let isSound = false
    try {
      const results = await this.#transact(connection, queries, isReading)
      connection.refuseUnconfirmed()
      isSound = true
      return results
    } catch (error) {
      isSound = wasRolledBack(error)
      throw error
    } finally {
      connection.release(isSound)
      if (!isSound) {
        this.#writable.forget()
      }
    }
  }

  /**
   * Begins a transaction that may take long, on a connection that ends with its disposal.
   *
   * @param mode such as `read only`
   */
  async begin(mode = ''): Promise<Connection> {
    const connection = await this.#connect()
    try {
      await connection.send([`${this.#begin(mode)}; ${patienceQuery}`])
      return connection
    } catch (error) {
      connection.release(false)
      this.#writable.forget()
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writable.end()
  }

  async #connect(): Promise<Connection> {
    return new Connection(await this.#writable.connect())
  }

  async #transact(
    connection: Connection,
    queries: readonly pg.QueryConfig[],
    isReading: boolean,
  ): Promise<readonly pg.QueryResult[]> {
    const isPooled = this.#settings !== undefined
    // A single statement is a transaction.
    if (queries.length === 1 && !isPooled) {
      return connection.send(queries)
    }
    const sent = isPooled ? queries.map(withoutName) : queries
    if (isReading) {
      const results = await connection.send([this.#begin(), ...sent, 'commit'])
      return results.slice(1, -1)
    }
    // Changes wait for the answer to `begin`. If it failed, the server would make each of
    // the following queries a transaction of its own, which only reads can bear.
    await connection.send([this.#begin()])
    const results = await connection.send([...sent, 'commit'])
    return results.slice(0, -1)
  }

  #begin(mode = ''): string {
    return this.#settings === undefined
      ? `begin ${mode}`
      : `begin ${mode}; ${this.#settings}`
  }
}

/** Returns a query that is not prepared. */
function withoutName({ name, ...query }: pg.QueryConfig): pg.QueryConfig {
  return query
}
