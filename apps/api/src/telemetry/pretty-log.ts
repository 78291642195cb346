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

const prettify = prettyFactory({
  colorize: isColorSupported,
  singleLine: true,
  translateTime: 'SYS:HH:MM:ss.l',
  errorLikeObjectKeys: ['err'],
  messageFormat: line => {
    const message = `${line['msg']}`
    return sentences[message]?.(line) ?? message
  },
  // The fields that a sentence contains, and two that people do not need.
  ignore: 'url,database,method,route,status,ms,client,traceId',
})

export function prettyLines(lines: string): string {
  // A dot would not match the separators of lines that texts from outside may contain.
  return lines.replaceAll(/([^\n]+)\n/g, (_, line) => prettyLine(line))
}

function prettyLine(line: string) {
  try {
    return prettify(JSON.parse(line, printableValue)) ?? ''
  } catch {
    // It is no line of pino's, but must not be lost.
    return `${printable(line)}\n`
  }
}

/** Keeps line ends and tabs, which stacks have. */
function printableValue(_name: string, value: unknown): unknown {
  if (typeof value !== 'string') {
    return value
  }
  return value.replaceAll(/[^\n\t]+/g, part => printable(part))
}
