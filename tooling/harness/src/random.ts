/** Returns pseudo-random numbers, the same for the same seed. */
export interface Random {
  /** An integer from 0 and below `bound`. */
  below(bound: number): number
  /** Whether something with this chance (0…1) happens. */
  chance(probability: number): boolean
  pick<Item>(items: readonly Item[]): Item
}

/** splitmix32. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return (mixed ^ (mixed >>> 15)) >>> 0
  }
  const below = (bound: number) => Math.floor((next() / 2 ** 32) * bound)
  return {
    below,
    chance: probability => next() / 2 ** 32 < probability,
    pick: items => items[below(items.length)] as never,
  }
}

/** The environment variable `SEED` repeats a run. */
export const anySeed = (): number =>
  Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
