/**
 * Reads JSON with every integer, at any depth, as a bigint: what a test expects of digits must not itself be rounded.
 * Slow, and independent of how the server reads.
 *
 * @throws SyntaxError
 */
export function readExactly(text: string): unknown {
  const exact = (_name: string, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === 'number' && source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value
  // TypeScript does not know the third argument of a reviver yet.
  return JSON.parse(text, exact as (this: unknown, key: string, value: unknown) => unknown)
}
