import pg from 'pg'
import type { PostgresOptions } from '../types.ts'

/**
 * Returns the SQL by which sessions of the store differ from the defaults of the server,
 * the database and the role. The settings last for the connection, or behind a pooler by
 * transaction for the transaction that they are made in. With them a commit is on disk
 * and on the synchronous standbys, and the warning of a commit that is not on a standby
 * arrives. If row-level security would hide rows, statements fail instead of leaving them
 * out.
 */
export function settingsQuery({
  poolMode,
  timeoutMs,
  statementTimeoutMs = timeoutMs,
  schema,
}: PostgresOptions): string {
  const isLocal = poolMode === 'transaction'
  const searchPath =
    schema === undefined
      ? "current_setting('search_path')"
      : pg.escapeLiteral(pg.escapeIdentifier(schema))
  return `
    select set_config('statement_timeout', '${statementTimeoutMs}', ${isLocal}),
      set_config('row_security', 'off', ${isLocal}),
      set_config('client_min_messages', 'warning', ${isLocal}),
      set_config(
        'synchronous_commit',
        case current_setting('synchronous_commit')
          when 'remote_apply' then 'remote_apply' else 'on'
        end,
        ${isLocal}
      ),
      set_config('search_path', ${searchPath}, ${isLocal})`
}

/**
 * Returns the SQL that turns off, for one transaction, every timeout but that of a
 * statement. The transaction may pause for long, for instance while an export waits for a
 * slow pipe.
 */
export const patienceQuery = `
  select set_config('idle_in_transaction_session_timeout', '0', true),
    set_config('lock_timeout', '0', true),
    case
      when current_setting('transaction_timeout', true) is not null
      then set_config('transaction_timeout', '0', true)
    end`
