import { type Logger, pino } from 'pino'

/** What may wait for whoever reads the log; past it lines are dropped, so that a reader that stalls stalls nothing. */
const logBytesMax = 4 * 1024 * 1024

/**
 * The log goes to standard output many lines at a time, at most 100 ms late; the rest is written before the exit.
 * A write is no longer than a pipe takes in one piece, so that lines of several writers don't mix.
 */
export function openLog(level: string): Logger {
  const destination = pino.destination({
    dest: 1,
    sync: false,
    minLength: 3072,
    maxWrite: 4096,
    maxLength: logBytesMax,
    periodicFlush: 100,
  })
  process.on('exit', () => destination.flushSync())
  return pino({ level, base: null }, destination)
}
