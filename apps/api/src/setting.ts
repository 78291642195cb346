import { readFileSync, statSync } from 'node:fs'
import { messageOf, reasonOf } from '@plant-store/engine'
import type { Parse } from './units.ts'

/**
 * The settings that contain secrets. `NAME_FILE` may name a file with the value instead,
 * which is how containers get secrets.
 */
const secretSettings = ['DATABASE_URL', 'ACCESS_TOKENS']

/** Returns the variables that a setting may be in. */
export function variablesOf(name: string): readonly string[] {
  return secretSettings.includes(name) ? [name, `${name}_FILE`] : [name]
}

/**
 * Returns the value of a setting in the environment, or `undefined` if it is unset or
 * empty, because compose files and shells clear a variable by setting it to the empty
 * string.
 *
 * White space at an end is refused, because it is from a file with other line ends or
 * from a secret, and programs differ in whether they trim it. So are invisible
 * characters. A file with a secret may end with one line end.
 *
 * @throws Error with a line that begins with the name of the variable
 */
export function readSetting<Value>(
  environment: NodeJS.ProcessEnv,
  name: string,
  parse: Parse<Value>,
): Value | undefined {
  const fileVariable = `${name}_FILE`
  const text = environment[name] ?? ''
  const file = environment[fileVariable] ?? ''
  if (file === '') {
    return text === '' ? undefined : parseAs(name, text, parse)
  }
  if (!secretSettings.includes(name)) {
    throw new Error(`${fileVariable} is not read: set ${name}`)
  }
  if (text !== '') {
    throw new Error(`${fileVariable} and ${name} must not both be set`)
  }
  const secret = readSecret(fileVariable, file)
  return parseAs(`${fileVariable} names a file whose content`, secret, parse)
}

/** Reads a file in UTF-8, perhaps with a byte order mark. */
function readSecret(variable: string, file: string) {
  try {
    // A pipe could keep the start waiting forever.
    if (!statSync(file).isFile()) {
      throw new Error('it is not a file')
    }
    const utf8 = new TextDecoder('utf-8', { fatal: true })
    return utf8.decode(readFileSync(file)).replace(/\r?\n$/, '')
  } catch (cause) {
    const reason = reasonOf(cause)
    throw new Error(`${variable} names a file that cannot be read: ${reason}`, { cause })
  }
}

/** @param subject the start of the message of an error */
function parseAs<Value>(subject: string, text: string, parse: Parse<Value>): Value {
  try {
    if (text === '') {
      throw new Error('must not be empty')
    }
    if (/^[\s\p{C}]|[\s\p{C}]$/u.test(text)) {
      throw new Error(
        'must not begin or end with white space, such as the line end of a file from Windows',
      )
    }
    return parse(text)
  } catch (cause) {
    throw new Error(`${subject} ${messageOf(cause)}`, { cause })
  }
}
