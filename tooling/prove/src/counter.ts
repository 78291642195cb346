/** Counts events, for somebody who waits for one of them. */
export class Counter {
  count = 0
  #awaited = Number.POSITIVE_INFINITY
  #moment = Promise.withResolvers<void>()

  add(): void {
    this.count++
    if (this.count === this.#awaited) {
      this.#moment.resolve()
    }
  }

  /** Resolves after this many more events. */
  after(more: number): Promise<void> {
    this.#moment = Promise.withResolvers()
    this.#awaited = this.count + more
    return this.#moment.promise
  }
}
