import { type Logger, pino } from 'pino'

/** What may wait for whoever reads the log; past it lines are dropped, so that a reader that stalls stalls nothing. */
const logBytesMax = 4 * 1024 * 1024

/** For so long lines wait for others to be written with them, and so many characters of them. */
const gatherMs = 100
const gatherCharsMax = 32 * 1024

export interface ProcessLog {
  readonly logger: Logger
  /** Takes whole lines. */
  write(lines: string): void
}

/** The log on standard output, at most twice {@link gatherMs} late; the rest is written before the exit. */
export function openLog(level: string): ProcessLog {
  const destination = pino.destination({
    dest: 1,
    sync: false,
    minLength: 4096,
    maxLength: logBytesMax,
    periodicFlush: gatherMs,
  })
  // By itself, as a flush at the exit would try for ever to reach a reader that has gone.
  process.once('beforeExit', () => destination.flush())
  process.on('exit', () => destination.flushSync())
  return { logger: pino({ level, base: null }, destination), write: lines => void destination.write(lines) }
}

/**
 * The log of a thread that has other things to do than to write it: a write of its own wakes a thread of libuv's each
 * time, and that cost a tenth of the creates that the service can answer (docs/decisions/0003).
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
