import { DomainError, parsePlant } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'

/**
 * A process with a store of its own, for tests that need a second one, or one to kill. It
 * opens the store whose URL is its argument, and obeys orders over IPC.
 */
export type Order =
  /** Inserts plants with these ids at once and answers with an outcome for each. */
  | { readonly insert: readonly bigint[]; readonly name: string }
  /** Answers with every id there is, as this process reads it. */
  | { readonly list: true }
  /** Answers with the outcome of a check. */
  | { readonly check: true }
  /**
   * Inserts from 1 on, with this many inserts under way at a time, until all are refused.
   * Answers with each id once it is inserted.
   */
  | { readonly flood: number }
  | { readonly close: true }
export type Answer =
  | { readonly outcomes: readonly string[] }
  | { readonly ids: readonly bigint[] }
  | { readonly inserted: bigint }
  | { readonly refused: true }
  | { readonly ready: true }
  | { readonly closed: true }

// On PostgreSQL the commits of several processes follow one another, on a busy disk.
const storage = await openStorage({ url: process.argv[2] as string, timeoutMs: 60_000 })
const answer = (message: Answer) => process.send?.(message)
const plant = (id: bigint, name: string) => parsePlant({ id, name })
const outcomeOf = (attempt: Promise<string>) =>
  attempt.catch((error: unknown) =>
    error instanceof DomainError ? error.code : String(error),
  )

async function flood(width: number): Promise<void> {
  let next = 1n
  const insertOn = async () => {
    for (;;) {
      const id = next++
      await storage.plants.insert(plant(id, 'x'.repeat(Number(id % 1000n))))
      answer({ inserted: id })
    }
  }
  await Promise.allSettled(Array.from({ length: width }, insertOn))
  answer({ refused: true })
}

process.on('message', async (order: Order) => {
  if ('insert' in order) {
    const attempts = order.insert.map(id =>
      outcomeOf(storage.plants.insert(plant(id, order.name))),
    )
    answer({ outcomes: await Promise.all(attempts) })
  } else if ('list' in order) {
    const plants = await storage.plants.page({ limit: 1_000_000 })
    answer({ ids: plants.map(({ id }) => id) })
  } else if ('check' in order) {
    const checking = storage.check().then(() => 'ready')
    answer({ outcomes: [await outcomeOf(checking)] })
  } else if ('flood' in order) {
    void flood(order.flood)
  } else {
    await storage[Symbol.asyncDispose]()
    answer({ closed: true })
    process.disconnect?.()
  }
})
answer({ ready: true })
