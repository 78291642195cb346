/** A source of pseudo-random numbers. */
export type Random = ReturnType<typeof createRandom>

/** Returns a source that is the same for the same seed (splitmix32). */
export function createRandom(seed: number) {
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
    /** Returns an integer from 0 and below `bound`. */
    below,
    /** Returns whether something with this chance (0…1) happens. */
    chance: (probability: number) => next() / 2 ** 32 < probability,
    // The index is that of an item.
    pick: <Item>(items: readonly Item[]) => items[below(items.length)] as Item,
  }
}

/** The environment variable `SEED` repeats a run. */
export const anySeed = (): number =>
  Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
