import { type Logger, pino } from 'pino'

/** Lines that wait for a slow reader. Beyond it lines are dropped, so that the reader never blocks the service. */
const logBytesMax = 4 * 1024 * 1024

/** How long lines are gathered into one write, and up to how many characters. */
const gatherMs = 100
const gatherCharsMax = 32 * 1024

export interface ProcessLog {
  readonly logger: Logger
  /** Writes complete lines. */
  write(lines: string): void
  /** Resolves to true once the log is written, or to false if its reader stalls for a second. */
  written(): Promise<boolean>
  /** Ends the process once the log is written, or after a second if its reader stalls. */
  exit(code: number): void
}

const lastWriteMs = 1_000

/**
 * Opens the log on standard output. Lines are at most twice {@link gatherMs} late, and written before the exit.
 *
 * @param toText formats lines of JSON
 */
export function openLog(level: string, toText = (lines: string) => lines): ProcessLog {
  const destination = pino.destination({
    dest: 1,
    sync: false,
    minLength: 4096,
    maxLength: logBytesMax,
    periodicFlush: gatherMs,
  })
  let isStalled = false
  // pino's own flush, at the exit or in `fatal`, would try forever to reach a reader that has gone.
  process.once('beforeExit', () => destination.flush())
  process.on('exit', () => isStalled || destination.flushSync())
  const write = (lines: string) => void destination.write(toText(lines))
  const written = () =>
    new Promise<boolean>(resolve => {
      destination.flush(() => resolve(true))
      setTimeout(resolve, lastWriteMs, false).unref()
    })
  return {
    logger: pino({ level, base: null }, { write }),
    write,
    written,
    exit(code) {
      written().then(isWritten => {
        isStalled = !isWritten
        process.exit(code)
      })
    },
  }
}

/**
 * Returns a log that gathers its lines for another thread to write. A write from each thread wakes a thread of libuv,
 * which cost a tenth of the creates per second (docs/decisions/0003).
 */
export function gatherLog(level: string, handOver: (lines: string) => void): Logger {
  let lines = ''
  let late: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(late)
    late = undefined
    if (lines !== '') handOver(lines)
    lines = ''
  }
  process.on('exit', flush)
  const write = (line: string) => {
    lines += line
    if (lines.length >= gatherCharsMax) flush()
    else late ??= setTimeout(flush, gatherMs).unref()
  }
  return pino({ level, base: null }, { write })
}
