import { isColorSupported, prettyFactory } from 'pino-pretty'

/** A line of the log, as it is parsed. */
type Line = Readonly<Record<string, unknown>>

/** What the message of a line says with its fields. The others follow it as JSON. */
const sentences: Readonly<Record<string, (line: Line) => string>> = {
  listening: ({ url, database }) => `serving ${database} on ${url}, to be tried out at ${url}/docs`,
  answered: ({ method, route = '(no such path)', status, ms }) => `${method} ${route} ${status} ${ms} ms`,
}
const inSentences = ['url', 'database', 'method', 'route', 'status', 'ms']
/** For programs, which read JSON. */
const leftOut = ['reqId', 'client', 'traceId']

const prettify = prettyFactory({
  colorize: isColorSupported,
  singleLine: true,
  translateTime: 'SYS:HH:MM:ss.l',
  errorLikeObjectKeys: ['err'],
  messageFormat: line => {
    const { msg } = line as { msg: string }
    return sentences[msg]?.(line) ?? msg
  },
  ignore: [...inSentences, ...leftOut].join(','),
})

/** Returns lines of the log as a person reads them on a terminal. */
export function prettyLines(lines: string): string {
  return lines.replaceAll(/.+\n/g, line => prettify(line) ?? '')
}
