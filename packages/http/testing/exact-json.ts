/**
 * Parses JSON with every integer, at any depth, as a bigint. It is slow, and independent
 * of the server's parser.
 *
 * @throws SyntaxError
 */
export function readExactly(text: string): unknown {
  const exact = (_name: string, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === 'number' && source !== undefined && /^-?\d+$/.test(source)
      ? BigInt(source)
      : value
  // The third argument of a reviver is not yet in TypeScript's types.
  return JSON.parse(
    text,
    exact as (this: unknown, key: string, value: unknown) => unknown,
  )
}
