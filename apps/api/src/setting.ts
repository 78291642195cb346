type Environment = Readonly<Record<string, string | undefined>>

/**
 * Returns the text of a setting in the environment, or `undefined` if it is unset or
 * empty, because compose files and shells clear a variable by setting it to the empty
 * string.
 *
 * White space at an end is refused, because it is from a file with other line ends or
 * from a secret, and programs differ in whether they trim it. So are invisible
 * characters.
 *
 * @throws Error whose message follows the name of the variable, such as `must not …`
 */
export function readSetting(environment: Environment, name: string): string | undefined {
  const text = environment[name]
  if (text === undefined || text === '') {
    return undefined
  }
  if (/^[\s\p{C}]|[\s\p{C}]$/u.test(text)) {
    throw new Error(
      'must not begin or end with white space, such as the line end of a file from Windows',
    )
  }
  return text
}
