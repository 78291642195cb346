import { type Problems, refusal } from './errors.ts'

declare const int64Brand: unique symbol
declare const unicodeTextBrand: unique symbol

/** A signed 64-bit integer. */
export type Int64 = bigint & { readonly [int64Brand]: true }

export interface Identified {
  readonly id: Int64
}

// Literals, because the build of a page that imports this package may contain Babel. It
// makes a power a call of Math.pow, which refuses bigints.
export const int64Min = -9_223_372_036_854_775_808n
export const int64Max = 9_223_372_036_854_775_807n

/**
 * Text without lone surrogates and U+0000, which every store can keep unchanged. It may
 * be empty, has no length limit, and is never trimmed or normalised.
 */
export type UnicodeText = string & { readonly [unicodeTextBrand]: true }

export const int64Problem = `must be an integer from ${int64Min} to ${int64Max}`

/**
 * Returns whether the value is a bigint in range. A JavaScript number is none, because it
 * may have been rounded.
 */
export function isInt64(value: unknown): value is Int64 {
  return typeof value === 'bigint' && value >= int64Min && value <= int64Max
}

/**
 * Returns why the value is not an id, or `undefined` if it is one.
 *
 * @param expected the id that the value must equal, if that is known
 */
export function idProblem(value: unknown, expected?: Int64): string | undefined {
  if (value === undefined) {
    return 'is required'
  }
  if (!isInt64(value)) {
    return int64Problem
  }
  if (expected !== undefined && value !== expected) {
    return `must equal ${expected}`
  }
  return undefined
}

/**
 * Returns the id in an unknown value.
 *
 * @param value a bigint from `int64Min` to `int64Max`; a JavaScript number is refused,
 *   because it may have been rounded
 * @throws DomainError `invalid-id`
 */
export function parseId<Id extends Int64>(value: unknown): Id {
  if (!isInt64(value)) {
    throw refusal('invalid-id', { id: int64Problem })
  }
  // The caller says which kind of id it is.
  return value as Id
}

/** Returns why the value is not {@link UnicodeText}, or `undefined` if it is. */
export function textProblem(value: unknown): string | undefined {
  if (value === undefined) {
    return 'is required'
  }
  if (typeof value !== 'string') {
    return 'must be a string'
  }
  if (!value.isWellFormed()) {
    return 'must be Unicode text without lone surrogates'
  }
  if (value.includes('\0')) {
    return 'must not contain U+0000'
  }
  return undefined
}

/** Returns the same for a value that may be missing. */
export function optionalTextProblem(value: unknown): string | undefined {
  if (value === undefined) {
    return undefined
  }
  return textProblem(value)
}

/** Returns whether the value is an object with members. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns an own member: a sender must not be able to name an inherited one. */
export function member(input: Readonly<Record<string, unknown>>, name: string): unknown {
  if (!Object.hasOwn(input, name)) {
    return undefined
  }
  return input[name]
}

/** Returns whether no field has a problem. Otherwise `refusal` returns the error. */
export function isFaultless(problems: Problems): boolean {
  for (const field in problems) {
    if (problems[field] !== undefined) {
      return false
    }
  }
  return true
}

/** Returns whether two items have the same members. */
export function isSame<Item extends object>(a: Item, b: Item): boolean {
  const members = Object.keys({ ...a, ...b }) as (keyof Item)[]
  return members.every(member => a[member] === b[member])
}

/**
 * Returns the length of a value's texts in UTF-8, in bytes. Texts are its members that
 * are strings.
 */
export function textBytes(value: object): number {
  let bytes = 0
  for (const text of Object.values(value)) {
    if (typeof text === 'string') {
      bytes += utf8Bytes(text)
    }
  }
  return bytes
}

function utf8Bytes(text: string) {
  // Most texts are ASCII, in which a search is faster than the loop.
  const firstOther = text.search(/[\x80-\uffff]/)
  if (firstOther === -1) {
    return text.length
  }

  let bytes = text.length
  for (let at = firstOther; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    // Each half of a surrogate pair counts two of its four bytes.
    const isSurrogate = unit >= 0xd800 && unit <= 0xdfff
    const hasThree = unit > 0x7ff && !isSurrogate
    bytes += Number(unit > 0x7f) + Number(hasThree)
  }
  return bytes
}
