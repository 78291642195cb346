import Database from 'better-sqlite3'

/**
 * The plants of a run, numbered 0, 1, 2 … A number decides everything about its plant, so that whoever knows how many
 * there are knows each of them. The load generators make the same plants: `wrk.lua` says all this once more.
 */
export interface Population {
  /** Another seed, other ids; below 2^31. */
  readonly seed: number
  /**
   * Ids are spread over 0 … 2^idBits - 1. The peers read JSON's numbers as JavaScript does, so 52 is the most they keep.
   */
  readonly idBits: 52 | 63
}

/** As many plants have the rare tag: the first ones. */
export const rarePlants = 50

/** A permutation of 0 … 2^idBits - 1: ids look random, yet none comes twice. */
export function idOf(ordinal: number, { seed, idBits }: Population): bigint {
  const mask = (1n << BigInt(idBits)) - 1n
  const half = BigInt(idBits >> 1)
  let id = (BigInt(ordinal) + BigInt(seed)) & mask
  id = (id * 0x9e3779b97f4a7c15n) & mask
  id ^= id >> half
  id = (id * 0xbf58476d1ce4e5b9n) & mask
  return id ^ (id >> half)
}

/** One tag on a tenth of the plants, fourteen on a twentieth each, none on a fifth. */
export function tagOf(ordinal: number): string | null {
  const kind = ordinal % 20
  if (kind < 2) return 'common'
  return kind < 16 ? `tag-${kind}` : null
}

export const nameOf = (ordinal: number) => `Plant ${ordinal}`

/** The body that creates a plant; JSON.stringify would not write its id. */
export function bodyOf(ordinal: number, population: Population): string {
  const tag = tagOf(ordinal)
  return `{"id":${idOf(ordinal, population)},"name":"${nameOf(ordinal)}"${tag === null ? '' : `,"tag":"${tag}"`}}`
}

/**
 * Puts plants straight into the file of a store that nobody has open. Its table and indexes are the ones that its
 * service made; they are filled in random order, as years of creates would have.
 */
export function fill(file: string, count: number, population: Population): void {
  const db = new Database(file)
  try {
    // The file is thrown away when this fails, so nothing has to be safe before the end.
    db.pragma('journal_mode = off')
    db.pragma('synchronous = off')
    db.pragma(`cache_size = -${Math.ceil((count * 100) / 1024) + 2_000}`)
    const insert = db.prepare('insert into plants (id, name, tag) values (?, ?, ?)')
    db.transaction(() => {
      for (let ordinal = 0; ordinal < count; ordinal++) {
        const tag = ordinal < rarePlants ? 'rare' : tagOf(ordinal)
        insert.run(idOf(ordinal, population), nameOf(ordinal), tag)
      }
    })()
    db.pragma('journal_mode = wal')
  } finally {
    db.close()
  }
}

export function countPlants(file: string): number {
  const db = new Database(file, { readonly: true })
  try {
    return db.prepare<[], number>('select count(*) from plants').pluck().get() as number
  } finally {
    db.close()
  }
}
