import type { AccessToken, Scope, TokenHash } from '@plant-store/access'
import type { Plant } from '@plant-store/domain'

/** The tables of both databases; 64-bit integers are bigint in each. */
export interface Tables {
  plants: PlantRow
  /** Of one connection, for a load that is kept whole or not at all. */
  staged: PlantRow
  access_tokens: TokenRow
  schema_version: { version: number }
}

export interface PlantRow {
  id: bigint
  name: string
  tag: string | null
}

export interface TokenRow {
  name: string
  /** SHA-256 in hexadecimal. */
  hash: string
  /** Separated by single spaces. */
  scopes: string
  /** Milliseconds since 1970, as are the others. */
  created_at: bigint
  expires_at: bigint | null
  last_used_at: bigint | null
}

/** The tokens in SQL. A row with an empty name, which no token has, records that there was a token. */
export const tokensHeld = "access_tokens where name <> ''"

/** The column of each member of a plant. A forgotten one does not compile. */
const columnOf = { id: 'id', name: 'name', tag: 'tag' } as const satisfies {
  readonly [Member in keyof Required<Plant>]: keyof PlantRow
}
const plantMembers = Object.keys(columnOf) as readonly (keyof Plant)[]
/** The columns of a plant, the key first. */
export const plantColumns: readonly (keyof PlantRow)[] = Object.values(columnOf)

/** @param found the columns of the table, which an earlier version has fewer of */
export function selectPlants(found: readonly string[]): string {
  const columns = plantColumns.map(column => (found.includes(column) ? `"${column}"` : `null as "${column}"`))
  return `select ${columns.join(', ')} from plants`
}

/** Unquoted, PostgreSQL would fold capital letters. */
export const quoted = (columns: readonly string[]) => columns.map(column => `"${column}"`)

/** The values of a plant in the order of {@link plantColumns}. */
export function fromPlant(plant: Plant): (bigint | string | null)[] {
  return plantMembers.map(member => plant[member] ?? null)
}

/** Rows were parsed on their way in. */
export function toPlant({ id, name, tag }: PlantRow): Plant {
  return (tag === null ? { id, name } : { id, name, tag }) as Plant
}

/** The values of a token in the order of the columns name, hash, scopes, created_at, expires_at. */
export function fromToken(
  token: AccessToken,
  hash: TokenHash,
): [string, string, string, bigint, bigint | null] {
  const { name, scopes, createdAt, expiresAt } = token
  return [name, hash, scopes.join(' '), milliseconds(createdAt), expiresAt ? milliseconds(expiresAt) : null]
}

export function toToken(row: Omit<TokenRow, 'hash'>): AccessToken {
  const { name, scopes, created_at, expires_at, last_used_at } = row
  return {
    name,
    scopes: scopes.split(' ').filter(Boolean) as Scope[],
    createdAt: new Date(Number(created_at)),
    ...(expires_at === null ? {} : { expiresAt: new Date(Number(expires_at)) }),
    ...(last_used_at === null ? {} : { lastUsedAt: new Date(Number(last_used_at)) }),
  }
}

export const milliseconds = (date: Date) => BigInt(date.getTime())
