import assert from 'node:assert/strict'
import pg from 'pg'
import { isStandbyWarning, type Notice } from './server-warnings.ts'

/** The routine of PostgreSQL that refuses a statement for which rows would be hidden. */
const rowSecurityCheck = 'check_enable_rls'

function hiddenRows(cause: pg.DatabaseError): Error {
  const remedy = cause.hint ?? 'its role must own the table, or have BYPASSRLS'
  return new Error(`${cause.message}: ${remedy}`, { cause })
}

/** A connection that one transaction uses until it is released. */
export class Connection implements AsyncDisposable {
  readonly #client: pg.PoolClient
  /**
   * Whether the server stopped waiting for its standby, because an operator told it so.
   * It reports such a commit as a success.
   */
  #isUnconfirmed = false
  /** Why the connection ended. pg does not tell it to the queries that come later. */
  #endReason: Error | undefined

  constructor(client: pg.PoolClient) {
    this.#client = client
    client.on('notice', this.#onNotice)
    client.on('error', this.#onError)
  }

  readonly #onNotice = (notice: Notice) => {
    this.#isUnconfirmed ||= isStandbyWarning(notice)
  }

  readonly #onError = (error: Error) => {
    this.#endReason ??= error
  }

  /** @throws Error with the server's reason if it ended the connection */
  async query<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<pg.QueryResult<Row>> {
    const [result] = await this.send([{ text, values: [...values] }])
    assert(result !== undefined, 'a query has a result')
    return result
  }

  /** Sends queries without waiting for answers in between. Throws like {@link query}. */
  async send(
    queries: readonly (string | pg.QueryConfig)[],
  ): Promise<readonly pg.QueryResult[]> {
    const answers = queries.map(query => this.#client.query(query))
    // Wait for all answers, so that no query is in progress when this method throws.
    await Promise.allSettled(answers)
    try {
      return await Promise.all(answers)
    } catch (error) {
      throw this.#reasonOf(error)
    }
  }

  /** @throws Error if the transaction was committed, but is not on the standby */
  refuseUnconfirmed(): void {
    if (this.#isUnconfirmed) {
      throw new Error('the server did not wait for its standby')
    }
  }

  /** Commits what {@link query} has done. Throws like {@link refuseUnconfirmed}. */
  async commit(): Promise<void> {
    await this.query('commit')
    this.refuseUnconfirmed()
  }

  /** @param isSound whether the next transaction can use the connection */
  release(isSound: boolean): void {
    this.#client.off('notice', this.#onNotice)
    this.#client.off('error', this.#onError)
    this.#client.release(!isSound)
  }

  /** Ends the connection, and takes a transaction back that was not committed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.release(false)
  }

  /** Returns what the server said about a failure, if it said something. */
  #reasonOf(error: unknown): unknown {
    if (error instanceof pg.DatabaseError) {
      return error.routine === rowSecurityCheck ? hiddenRows(error) : error
    }
    return this.#endReason ?? error
  }
}
