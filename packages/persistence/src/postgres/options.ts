export interface ServerOptions {
  /** One URL a host of the same database. Only the one that takes writes is used. */
  readonly hosts: readonly string[]
  /** For a connection to come about, and for a statement on it unless `statementTimeoutMs` says otherwise. */
  readonly timeoutMs: number
  readonly statementTimeoutMs?: number
}

export interface PostgresOptions extends ServerOptions {
  /** Connections for reading; one more is for writing. */
  readonly readConnectionsMax: number
}
