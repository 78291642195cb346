/** Why SQLite refused, in words that follow "because" or a colon. */
export function reasonOf(error: unknown): string {
  const { code = '', message } = error as { code?: string; message: string }
  const [, primary = ''] = /^(SQLITE_[A-Z]+)/.exec(code) ?? []
  return reasons[primary] ?? message
}

/** The same with SQLite's own name for it, for logs. */
export function detailedReasonOf(error: unknown): string {
  const { code } = error as { code?: string }
  return code === undefined ? reasonOf(error) : `${reasonOf(error)} (${code})`
}

const reasons: Readonly<Record<string, string>> = {
  SQLITE_BUSY: 'another program keeps it locked',
  SQLITE_CANTOPEN: 'the file can not be opened',
  SQLITE_CORRUPT: 'it is damaged',
  SQLITE_FULL: 'the disk is full',
  SQLITE_IOERR: 'the disk fails',
  SQLITE_NOTADB: 'it is not a SQLite database',
  SQLITE_READONLY: 'it may not be written',
}
