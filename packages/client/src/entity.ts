import type { Identified, Page, Version } from '@plant-store/domain'
import type { Send } from './send.ts'

/**
 * The operations on one entity of a store. Each rejects with the error of `parse`,
 * `parseId` or `parseQuery` before anything is sent, with RefusedError if the store
 * refuses, with NoAnswerError if the outcome is unknown, or with the signal's reason.
 */
export interface EntityClient<Item extends Identified, Query> {
  /**
   * Is not repeated once a first attempt may have created the item. The error then has
   * `mayHaveChanged`.
   */
  create(item: Input<Item>, options?: CallOptions): Promise<Item>
  read(id: bigint, options?: CallOptions): Promise<Item>
  /** Resolves to the item with the version for `ifMatch`. */
  readVersioned(id: bigint, options?: CallOptions): Promise<Versioned<Item>>
  /**
   * Resolves to one page, in ascending numeric order of id. It is the last one only if it
   * has no `next`.
   */
  list(query?: Partial<Query>, options?: CallOptions): Promise<Page<Item>>
  /** Yields page after page. Requests the next page only when the caller wants it. */
  pages(
    query?: Partial<Query>,
    options?: CallOptions,
  ): AsyncGenerator<readonly Item[], void, void>
  /**
   * Creates or replaces. With a condition, repeated attempts overwrite nothing else. If
   * one gets 412 after an attempt without an answer, the item is read: the call resolves
   * if the item is as requested.
   */
  replace(item: Input<Item>, options?: ChangeOptions): Promise<Versioned<Item>>
  /**
   * Resolves once the item is gone, even if an earlier attempt without an answer removed
   * it. A repeated attempt also removes an item that another client created under this id
   * in between, unless `ifMatch` excludes it.
   */
  remove(id: bigint, options?: Omit<ChangeOptions, 'ifNoneMatch'>): Promise<void>
}

/** The path and the rules of one entity. */
export interface EntityOptions<Item extends Identified, Query> {
  /** The path of the list, such as `/plants`. */
  readonly path: string
  /**
   * Returns the item in an unknown value.
   *
   * @param id the id in a path. The value may then lack its own
   */
  readonly parse: (value: unknown, id?: Item['id']) => Item
  readonly parseId: (id: bigint) => Item['id']
  /** Returns the parameters of the list by name. */
  readonly parseQuery: (query: Partial<Query>) => object
}

/** An item in plain values. An optional member may be `undefined`. */
export type Input<Item> = {
  readonly [Field in keyof Item]:
    | Plain<Item[Field]>
    | (object extends Pick<Item, Field> ? undefined : never)
}
type Plain<Value> = Value extends bigint ? bigint : Value extends string ? string : Value

export interface Versioned<Item> {
  readonly item: Item
  readonly version: Version
}

export interface ListQuery {
  /** From 1 to 1000, by default 100. */
  readonly limit?: number | undefined
  /** Only greater ids. */
  readonly after?: bigint | undefined
}

export interface CallOptions {
  /**
   * Aborts the call, including its waits between attempts. A change may have been made.
   */
  readonly signal?: AbortSignal | undefined
}

export interface ChangeOptions extends CallOptions {
  /**
   * Changes only this version of the item, and otherwise rejects with RefusedError 412
   * (`condition-failed`).
   */
  readonly ifMatch?: Version | undefined
  /**
   * Creates only, and rejects with RefusedError 412 (`condition-failed`) if the item
   * exists.
   */
  readonly ifNoneMatch?: '*' | undefined
}

/** The parts that all operations on one entity share. */
export interface EntityContext<Item extends Identified, Query> {
  readonly send: Send
  readonly listUrl: string
  readonly itemUrl: (id: Item['id']) => string
  readonly rules: EntityOptions<Item, Query>
}
