import { printable } from '@plant-store/engine'
import { isColorSupported, prettyFactory } from 'pino-pretty'

type Line = Readonly<Record<string, unknown>>

/** Sentences with the fields of some messages. Other fields follow a message as JSON. */
const sentences: Readonly<Record<string, (line: Line) => string>> = {
  listening: ({ url, database }) =>
    `serving ${database} on ${url}, look into it at ${url}/browse`,
  answered: ({ method, route = '(no such path)', status, ms }) => {
    const subject = method === undefined ? 'incomplete request' : `${method} ${route}`
    return `${subject} ${status} ${ms} ms`
  },
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

export function prettyLines(lines: string): string {
  return lines.replaceAll(
    /.+\n/g,
    line =>
      prettify(line.startsWith('{') ? JSON.parse(line, printableValue) : line) ?? '',
  )
}

/** Keeps line ends and tabs, for stacks. */
function printableValue(_: string, value: unknown): unknown {
  return typeof value === 'string'
    ? value.replaceAll(/[^\n\t]+/g, part => printable(part))
    : value
}
