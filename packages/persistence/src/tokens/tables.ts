export interface TokenRow {
  name: string
  /** SHA-256 in hexadecimal. */
  hash: string
  /** Separated by single spaces. */
  scopes: string
  /** Milliseconds since 1970, as are the other times. */
  created_at: bigint
  expires_at: bigint | null
  last_used_at: bigint | null
}
