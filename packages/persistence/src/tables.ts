import type { AccessToken, Scope, TokenHash } from '@plant-store/access'
import { type Plant, plantTexts } from '@plant-store/domain'

/** The tables as both databases have them; 64-bit integers are bigint on either side. */
export interface Tables {
  plants: PlantRow
  access_tokens: TokenRow
  schema_version: { version: number }
}

/** A column for each member of a plant, of the same name; null where an optional one is absent. */
export type PlantRow = {
  -readonly [Column in keyof Plant]-?: Plant[Column] extends bigint
    ? bigint
    : undefined extends Plant[Column]
      ? string | null
      : string
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

/** The tokens in SQL: a row without a name, which no token can be without, says that there was one. */
export const tokensHeld = "access_tokens where name <> ''"

/** The columns of a plant, the key first. */
export const plantColumns: readonly (keyof PlantRow)[] = ['id', ...plantTexts.map(({ field }) => field)]

/**
 * The beginning of a statement that reads plants of a store that may be of an earlier version.
 *
 * @param found the columns that its table has
 */
export function selectPlants(found: readonly string[]): string {
  const columns = plantColumns.map(column => (found.includes(column) ? column : `null as ${column}`))
  return `select ${columns.join(', ')} from plants`
}

/** The values of a plant in the order of {@link plantColumns}. */
export function fromPlant(plant: Plant): (bigint | string | null)[] {
  return plantColumns.map(column => plant[column] ?? null)
}

const optionalColumns = plantTexts.filter(({ isOptional }) => isOptional).map(({ field }) => field)

/** What the store holds was parsed on its way in, so a row of {@link plantColumns} without a null is a plant as it is. */
export function toPlant(row: PlantRow): Plant {
  if (optionalColumns.every(column => row[column] !== null)) return row as unknown as Plant
  const plant: Record<string, unknown> = { id: row.id }
  for (const { field } of plantTexts) if (row[field] !== null) plant[field] = row[field]
  return plant as unknown as Plant
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
