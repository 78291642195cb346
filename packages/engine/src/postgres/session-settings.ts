import pg from 'pg'

/**
 * How sessions of the store differ from the defaults of the server, the database and the
 * role.
 */
export interface SessionSettings {
  readonly statementTimeoutMs: number
  /**
   * The schema that has the store, whatever the search path was. Absent while it is
   * looked for.
   */
  readonly schema: string | undefined
}

/**
 * How long settings last: for the connection, or for the transaction that they are made
 * in.
 */
export type SettingsScope = 'session' | 'transaction'

/**
 * Returns the SQL that makes settings. With them a commit is on disk and on the
 * synchronous standbys, and the warning of a commit that is not on a standby arrives.
 */
export function settingsQuery(
  { statementTimeoutMs, schema }: SessionSettings,
  scope: SettingsScope,
): string {
  const settings: [name: string, expression: string][] = [
    ['statement_timeout', pg.escapeLiteral(`${statementTimeoutMs}`)],
    ['client_min_messages', "'warning'"],
    [
      'synchronous_commit',
      `case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end`,
    ],
  ]
  if (schema !== undefined) {
    settings.push(['search_path', pg.escapeLiteral(pg.escapeIdentifier(schema))])
  }
  return `select ${settings.map(setting => setConfig(setting, scope)).join(', ')}`
}

/**
 * Returns the SQL that turns off, for one transaction, every timeout but that of a
 * statement. The transaction may pause for long, for instance while an export waits for a
 * slow pipe.
 */
export const patienceQuery = `
  select ${setConfig(['idle_in_transaction_session_timeout', "'0'"], 'transaction')},
    ${setConfig(['lock_timeout', "'0'"], 'transaction')},
    case when current_setting('transaction_timeout', true) is not null
      then ${setConfig(['transaction_timeout', "'0'"], 'transaction')} end`

function setConfig(
  [name, expression]: readonly [name: string, expression: string],
  scope: SettingsScope,
): string {
  return `set_config('${name}', ${expression}, ${scope === 'transaction'})`
}
