/** Returns a time as the tables have it, in milliseconds since 1970. */
export function milliseconds(date: Date) {
  return BigInt(date.getTime())
}

export function toDate(milliseconds: bigint) {
  return new Date(Number(milliseconds))
}
