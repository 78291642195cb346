import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '@plant-store/engine'
import { type Notes, note } from './notes.ts'

const creatorsCount = 32

/**
 * How long a creator waits after a refusal. A client does not come again at once, either.
 */
const pauseAfterRefusalMs = 5

/** The outcomes of the creates of a load. */
export interface LoadReport {
  readonly insertedIds: readonly bigint[]
  /** The ids of creates that were refused. The notes may be stored all the same. */
  readonly unknownIds: readonly bigint[]
  readonly slowestMs: number
}

/** Creates notes with new ids, some at once, until it is stopped. */
export class CreateLoad implements AsyncDisposable {
  readonly #notes: Notes
  readonly #insertedIds: bigint[] = []
  readonly #unknownIds: bigint[] = []
  #slowestMs = 0
  #nextId = 0n
  #isStopped = false
  /** Rejects if a create fails in another way than by an outage. */
  readonly #creators: Promise<unknown>

  constructor(notes: Notes) {
    this.#notes = notes
    const creators = Array.from({ length: creatorsCount }, () => this.#create())
    this.#creators = Promise.all(creators)
    // It is awaited later.
    this.#creators.catch(() => {})
  }

  /** Resolves once a hundred more creates have succeeded. */
  async succeeds(): Promise<void> {
    const goal = this.#insertedIds.length + 100
    while (this.#insertedIds.length < goal) {
      await Promise.race([sleep(5), this.#creators])
    }
  }

  async stop(): Promise<LoadReport> {
    this.#isStopped = true
    await this.#creators
    return {
      insertedIds: this.#insertedIds,
      unknownIds: this.#unknownIds,
      slowestMs: this.#slowestMs,
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true
    await this.#creators.catch(() => {})
  }

  async #create(): Promise<void> {
    while (!this.#isStopped) {
      const id = this.#nextId++
      const startedMs = performance.now()
      const isInserted = await this.#insert(id)
      this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedMs)
      if (isInserted) {
        this.#insertedIds.push(id)
      } else {
        this.#unknownIds.push(id)
        await sleep(pauseAfterRefusalMs)
      }
    }
  }

  /** @throws Error if the answer is wrong, as the id is new */
  async #insert(id: bigint): Promise<boolean> {
    try {
      const isInserted = await this.#notes.insert(note(id))
      if (!isInserted) {
        throw new Error(`the new id ${id} is taken`)
      }
      return true
    } catch (error) {
      if (error instanceof StoreError && error.code === 'store-unavailable') {
        return false
      }
      throw error
    }
  }
}
