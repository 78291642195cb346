import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Change } from '../statements/statement.ts'

/**
 * Each thread sends each kind by a MessagePort of its own. Single changes overtake bulk
 * ones, and wait for few of them.
 */
export type ChangeKind = 'single' | 'bulk'

/** Changes that a thread has sent together. */
export interface Group {
  readonly sender: MessagePort
  readonly changes: readonly Change[]
  /** The rows that each change has affected, once the transaction has made it. */
  readonly affectedRows: number[]
}

/**
 * A transaction with this many changes of a kind takes no further group of them. There
 * are more bulk ones, because a transaction writes a page once for all its changes.
 */
const transactionChangesMax = { single: 1_000, bulk: 8_000 }

/**
 * How long changes are recent. After a recent single change, a transaction takes bulk
 * groups only as long as the last COMMIT took, and at least one: other single changes may
 * wait for them. So bulk changes delay a single one by about a COMMIT, on a disk of any
 * speed, or by one bulk group if that takes longer. Without a recent one, a single change
 * may wait for 8,000 bulk ones.
 */
const recentMs = 1_000

/**
 * Receives groups, and hands them to one transaction after another: those that wait when
 * it begins, and those that arrive while its statements run. What arrives during COMMIT
 * waits for the next transaction.
 */
export class Arrivals {
  /**
   * The kind of changes that each port sends. A port leaves when its thread closes it.
   */
  readonly senders = new Map<MessagePort, ChangeKind>()
  /**
   * The groups of each kind that were received and that no transaction has taken, in
   * order of arrival.
   */
  #waiting: Record<ChangeKind, Group[]> = { single: [], bulk: [] }
  /** When a group of each kind last arrived or was committed, by `performance.now`. */
  readonly #lastMs = {
    single: Number.NEGATIVE_INFINITY,
    bulk: Number.NEGATIVE_INFINITY,
  }
  /** The groups that the transaction has taken, until it ends or fails. */
  #taken: Group[] = []
  /** How many changes of each kind those have. */
  #takenChanges = { single: 0, bulk: 0 }
  /** When the transaction took its first bulk group. */
  #bulkStartMs = 0
  /** When the writer last called `next`, by `performance.now`. */
  #nextCalledMs = 0
  /**
   * How long the last COMMIT took, from the last call of `next` to `end`. After one that
   * wrote the most, this includes the statements of its last group.
   */
  #commitMs = 0

  /** Adds a group that Node has delivered as an event. */
  add(sender: MessagePort, changes: readonly Change[]) {
    const kind = this.senders.get(sender)
    // A message may come after its port was closed. Nobody waits for the answer.
    if (kind === undefined) {
      return
    }
    this.#lastMs[kind] = performance.now()
    this.#waiting[kind].push({ sender, changes, affectedRows: [] })
  }

  /** Whether a group waits. Ports may hold others that were not received. */
  hasWaiting() {
    return this.#waiting.single.length + this.#waiting.bulk.length > 0
  }

  /** Begins a transaction: receives all groups that have arrived. */
  begin() {
    this.#takenChanges = { single: 0, bulk: 0 }
    for (const sender of this.senders.keys()) {
      while (this.#receiveFrom(sender)) {}
    }
  }

  /** Returns the next group of the transaction, or `undefined` if it takes no other. */
  next() {
    this.#nextCalledMs = performance.now()
    if (this.#takenChanges.bulk === 0) {
      this.#bulkStartMs = this.#nextCalledMs
    }
    return this.#take('single') ?? (this.#isBulkLate() ? undefined : this.#take('bulk'))
  }

  /**
   * Ends a transaction, and returns its groups. Its changes are recent from now on,
   * because a slow disk may have taken longer than `recentMs` for them.
   */
  end() {
    this.#commitMs = performance.now() - this.#nextCalledMs
    for (const kind of ['single', 'bulk'] as const) {
      if (this.#takenChanges[kind] > 0) {
        this.#lastMs[kind] = performance.now()
      }
    }
    const groups = this.#taken
    this.#taken = []
    return groups
  }

  /**
   * Removes and returns the groups of a failed transaction and all that wait, which would
   * meet the same lock or disk, and have waited already.
   */
  takeFailedAndWaiting() {
    const groups = [...this.#taken, ...this.#waiting.single, ...this.#waiting.bulk]
    this.#taken = []
    this.#waiting = { single: [], bulk: [] }
    return groups
  }

  /** Returns which kinds of changes arrived or were committed within the last second. */
  recent() {
    return { single: this.#isRecent('single'), bulk: this.#isRecent('bulk') }
  }

  /** Returns whether bulk changes have had their time while single ones may wait. */
  #isBulkLate() {
    const bulkMs = this.#nextCalledMs - this.#bulkStartMs
    const isTooLong = this.#takenChanges.bulk > 0 && bulkMs >= this.#commitMs
    return isTooLong && this.#isRecent('single')
  }

  /** Takes the first group of a kind that waits, or else one that has just arrived. */
  #take(kind: ChangeKind) {
    if (this.#takenChanges[kind] >= transactionChangesMax[kind]) {
      return
    }
    const waiting = this.#waiting[kind]
    for (const [sender, kindOfSender] of this.senders) {
      if (waiting.length === 0 && kindOfSender === kind) {
        this.#receiveFrom(sender)
      }
    }
    const group = waiting.shift()
    if (group !== undefined) {
      this.#taken.push(group)
      this.#takenChanges[kind] += group.changes.length
    }
    return group
  }

  /**
   * Receives a group without waiting for the event loop. Returns whether there was one.
   */
  #receiveFrom(sender: MessagePort) {
    const received = receiveMessageOnPort(sender)
    if (received === undefined) {
      return false
    }
    this.add(sender, received.message)
    return true
  }

  #isRecent(kind: ChangeKind) {
    return performance.now() - this.#lastMs[kind] <= recentMs
  }
}
