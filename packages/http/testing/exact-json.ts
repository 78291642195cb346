import type { Answer } from './wire.ts'

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

// TypeScript's types do not have it yet.
const { rawJSON } = JSON as JSON & { rawJSON(text: string): unknown }

/** Returns JSON with exact ids, which `JSON.stringify` refuses to write. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_name, member) =>
    typeof member === 'bigint' ? rawJSON(`${member}`) : member,
  )
}

/** Returns the body of an answer, with integers as bigints. */
export function jsonOf(answer: Answer): unknown {
  return readExactly(`${answer.body}`)
}
