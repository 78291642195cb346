import { isColorSupported, prettyFactory } from 'pino-pretty'

type Line = Readonly<Record<string, unknown>>

/** Sentences with the fields of some messages. Other fields follow a message as JSON. */
const sentences: Readonly<Record<string, (line: Line) => string>> = {
  listening: ({ url, database }) => `serving ${database} on ${url}, try it at ${url}/docs`,
  answered: ({ method, route = '(no such path)', status, ms }) => `${method} ${route} ${status} ${ms} ms`,
}
const inSentences = ['url', 'database', 'method', 'route', 'status', 'ms']
const leftOut = ['client', 'traceId']

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

/** Formats log lines for a terminal. */
export function prettyLines(lines: string): string {
  return lines.replaceAll(
    /.+\n/g,
    line => prettify(line.startsWith('{') ? JSON.parse(line, escaped) : line) ?? '',
  )
}

/** Escapes what a terminal would obey: control characters, and those that turn the direction of a text. */
function escaped(_: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  return value.replaceAll(
    /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
