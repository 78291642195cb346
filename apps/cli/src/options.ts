import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { amount, type Parse } from '@plant-store/api/units'
import { messageOf } from '@plant-store/engine'
import { formatNames } from './formats/formats.ts'

// Options and arguments that several commands have.

export const jsonOption = new Option('--json', 'print JSON')

export const forceOption = new Option('--force', 'replace an existing file')

export const inputFormatOption = new Option(
  '--format <format>',
  'of the file (by default detected from its content)',
).choices(formatNames)

/** Returns what reads an argument, and calls a wrong one wrong usage. */
export function argument<Value>(parse: Parse<Value>): Parse<Value> {
  return text => {
    try {
      return parse(text)
    } catch (error) {
      throw new InvalidArgumentError(`It ${messageOf(error)}.`)
    }
  }
}

export const countOf = argument(amount({ '': 1 }, 1, 9999, 'a number from 1 to 9999'))

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
