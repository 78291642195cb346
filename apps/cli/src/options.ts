import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { formatNames } from './formats/formats.ts'

// Options and arguments that several commands have.

export const jsonOption = new Option('--json', 'print JSON')

export const forceOption = new Option('--force', 'replace an existing file')

export const inputFormatOption = new Option(
  '--format <format>',
  'of the file (by default detected from its content)',
).choices(formatNames)

export function countOf(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) {
    return Number(text)
  }
  throw new InvalidArgumentError('It must be a number from 1 to 9999.')
}

/** Reads an argument of commands that neither read standard input nor write plants. */
export function filePath(text: string): string {
  if (text === '') {
    throw new InvalidArgumentError('It must be the path of a file.')
  }
  if (text === '-') {
    throw new InvalidArgumentError(
      'It must be a file, not a stream. Write ./- for a file of this name.',
    )
  }
  return text
}
