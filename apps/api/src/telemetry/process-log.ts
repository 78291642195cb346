import { printable } from '@plant-store/engine'
import type { AnsweredRequest } from '@plant-store/http/server'
import { pino } from 'pino'
import sonicBoom from 'sonic-boom'
import type { Config } from '../config.ts'

// A CommonJS module, whose names Node does not find without a bundler.
const { SonicBoom } = sonicBoom

/** Load the functions that write lines of JSON in a format. */
const formats = {
  json: async () => printableLines,
  journal: async () => journalLines,
  // Only this format needs the library.
  pretty: async () => (await import('./pretty-log.ts')).prettyLines,
}

/**
 * How many bytes of lines wait for a slow reader or a full disk. Further lines are lost,
 * so that neither holds up the service.
 */
const logBytesMax = 4 * 1024 * 1024

/** How long lines are gathered into one write, and up to how many characters. */
const gatherMs = 100
const gatherCharsMax = 32 * 1024

/** How long the end of the process waits for the last lines to be written. */
const lastWriteMs = 1_000

/** Levels by their names, which searches and alerts use. */
const lineFormat = {
  base: null,
  formatters: { level: (label: string) => ({ level: label }) },
}

export type ProcessLog = Awaited<ReturnType<typeof openLog>>

/**
 * Opens the log. Lines are at most twice {@link gatherMs} late.
 *
 * @param fd the open file, by default standard output
 */
export async function openLog(
  { logLevel, logFormat }: Pick<Config, 'logLevel' | 'logFormat'>,
  fd = 1,
) {
  const toText = await formats[logFormat]()
  const destination = new SonicBoom({
    fd,
    minLength: 4096,
    maxLength: logBytesMax,
    periodicFlush: gatherMs,
  })
  let lostLines = 0
  destination.on('drop', (lines: string) => {
    lostLines += lines.split('\n').length - 1
  })
  // Lines that could not be written wait for the next attempt.
  destination.on('error', () => {})
  const write = (lines: string) => {
    destination.write(toText(lines))
  }
  const written = () =>
    new Promise<boolean>(resolve => {
      destination.flush(error => resolve(!error))
      setTimeout(resolve, lastWriteMs, false).unref()
    })
  return {
    logger: pino({ level: logLevel, ...lineFormat }, { write }),
    write,
    lostLines: () => lostLines,
    /**
     * Resolves to true once the log is written, or to false if that fails or takes a
     * second.
     */
    written,
    /** Ends the process once the log is written, or after a second. */
    exit: (code: number) => void written().then(() => process.exit(code)),
  }
}

/** The priorities of syslog, by pino's levels. */
const priorities: Readonly<Record<string, number>> = {
  fatal: 2,
  error: 3,
  warn: 4,
  info: 6,
  debug: 7,
  trace: 7,
}

/**
 * Escapes what a terminal would obey and JSON may contain. The texts in the lines keep
 * their meaning.
 */
function printableLines(lines: string) {
  return lines.replaceAll(/[\x7f-\uffff]+/g, printable)
}

/** Puts the priority before each line, as systemd's journal reads it (sd-daemon(3)). */
export function journalLines(lines: string): string {
  return printableLines(lines).replaceAll(
    /^\{"level":"(\w+)"/gm,
    (start, level) => `<${priorities[level]}>${start}`,
  )
}

/**
 * Returns a log that gathers its lines for another thread to write. A write from each
 * thread wakes a thread of libuv, which cost a tenth of the creates per second
 * (docs/decisions/0003).
 */
export function gatherLog(level: Config['logLevel'], handOver: (lines: string) => void) {
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (lines !== '') {
      handOver(lines)
    }
    lines = ''
  }
  process.on('exit', flush)
  const write = (line: string) => {
    lines += line
    if (lines.length >= gatherCharsMax) {
      flush()
    } else {
      timer ??= setTimeout(flush, gatherMs).unref()
    }
  }
  const logger = pino({ level, ...lineFormat }, { write })
  return {
    logger,
    /** Writes the line of a request. */
    onAnswer(answered: AnsweredRequest): void {
      if (!logger.isLevelEnabled('info')) {
        return
      }
      // pino would add the line up member by member, in strings of 1.6 kB.
      // A copy with the level, the time and the message would take 500 bytes.
      const members = JSON.stringify(answered).slice(1, -1)
      write(`{"level":"info","time":${Date.now()},${members},"msg":"answered"}\n`)
    },
  }
}
