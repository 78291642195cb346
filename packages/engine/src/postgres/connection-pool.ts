import type pg from 'pg'
import type { PostgresOptions } from '../types.ts'
import type { Connection } from './connection.ts'
import { HostPool } from './host-pool.ts'
import { wasRolledBack } from './retry.ts'
import type { WarningListener } from './server-warnings.ts'
import { patienceQuery, settingsQuery } from './session-settings.ts'
import { findWritableHost } from './writable-host.ts'

/** The pause after an attempt in which no host could be taken. */
const askAgainAfterMs = 100

/**
 * Connections to the host that accepts writes. A store that is only read also takes one
 * that does not, if there is no other. The host is
 *
 * - unknown, at first and after a failure: the next transaction asks all hosts at once.
 * - asked for: transactions wait for the answer.
 * - found: transactions connect to the host, until one fails or idle connections end.
 * - refused: no host accepts writes, or several do. Transactions fail. After a pause the
 *   host is unknown again.
 */
export class ConnectionPool implements AsyncDisposable {
  readonly #hosts: readonly HostPool[]
  readonly #mayBeReadOnly: boolean | undefined
  /** Absent while the host is unknown. */
  #host: Promise<HostPool> | undefined
  /**
   * The SQL that a transaction begins with, if it makes settings. Behind a pooler by
   * transaction, neither settings nor prepared statements outlive a transaction.
   */
  readonly #settings: string | undefined

  constructor(
    options: PostgresOptions,
    connectionsMax: number,
    onWarning: WarningListener = () => {},
  ) {
    const listeners = { onLost: () => this.#forgetHost(), onWarning }
    this.#hosts = options.hosts.map(
      host => new HostPool(host, options, connectionsMax, listeners),
    )
    this.#mayBeReadOnly = options.mayBeReadOnly
    this.#settings =
      options.poolMode === 'transaction' ? settingsQuery(options) : undefined
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
    try {
      const results = await this.#transact(connection, queries, isReading)
      connection.refuseUnconfirmed()
      connection.release()
      return results
    } catch (error) {
      connection.release(!wasRolledBack(error))
      throw error
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
      connection.release(true)
      throw error
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#hosts.map(host => host.end()))
  }

  /** @throws Error with the reason of each host */
  async #connect(): Promise<Connection> {
    if (this.#host === undefined) {
      this.#host = findWritableHost(this.#hosts, this.#mayBeReadOnly)
      this.#host.catch(() =>
        setTimeout(() => this.#forgetHost(), askAgainAfterMs).unref(),
      )
    }
    const host = await this.#host
    try {
      return await host.connect()
    } catch (error) {
      this.#forgetHost()
      throw error
    }
  }

  /** Called after a failure, because the server may have become read-only. */
  #forgetHost() {
    this.#host = undefined
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
    // A query without a name is not prepared.
    const sent = isPooled ? queries.map(({ name, ...query }) => query) : queries
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

  #begin(mode = '') {
    return this.#settings === undefined
      ? `begin ${mode}`
      : `begin ${mode}; ${this.#settings}`
  }
}
