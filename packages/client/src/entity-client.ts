import {
  type Identified,
  isSame,
  isVersion,
  type Page,
  type Total,
  totalMax,
  type Version,
} from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import { errorNumbers, RefusedError } from './errors.ts'
import { type ClientOptions, operationUrl } from './options.ts'
import { type Answer, createSend, type Send } from './send.ts'

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
  replace(item: Input<Item>, options?: ChangeOptions): Promise<Replaced<Item>>
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

export interface Replaced<Item> extends Versioned<Item> {
  /**
   * Whether the item is new. A repeated attempt replaces what an earlier one created, and
   * then this is false.
   */
  readonly created: boolean
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

/** Returns the reads that the page at `/browse` needs, too. */
export function createReads<Item extends Identified, Query extends ListQuery>(
  send: Send,
  listUrl: string,
  { parse, parseId, parseQuery }: Omit<EntityOptions<Item, Query>, 'path'>,
): Pick<EntityClient<Item, Query>, 'readVersioned' | 'list'> {
  return {
    async readVersioned(input, { signal } = {}) {
      const id = parseId(input)
      const read = (body: unknown, answer: Answer) => ({
        item: parse(body, id),
        version: readVersion(answer),
      })
      return send({ method: 'GET', url: `${listUrl}/${id}`, signal, read })
    },
    async list(query = {}, { signal } = {}) {
      const url = new URL(listUrl)
      for (const [name, value] of Object.entries(parseQuery(query))) {
        url.searchParams.set(name, `${value}`)
      }
      const read = (body: unknown, { headers }: Answer): Page<Item> => ({
        items: readList(body).map(item => parse(item)),
        ...readNext(headers.get('link'), parseId),
        ...readTotal(headers.get('total-count')),
      })
      return send({ method: 'GET', url: url.href, signal, read })
    },
  }
}

export function createEntityClient<Item extends Identified, Query extends ListQuery>(
  options: ClientOptions & EntityOptions<Item, Query>,
): EntityClient<Item, Query> {
  const { parse, parseId } = options
  const send = createSend(options)
  const listUrl = operationUrl(options, options.path)
  const itemUrl = (id: Item['id']) => `${listUrl}/${id}`

  const client: EntityClient<Item, Query> = {
    ...createReads(send, listUrl, options),
    async create(input, { signal } = {}) {
      const item = parse(input)
      const body = writeJsonRecord(item)
      const read = (answer: unknown) => parse(answer, item.id)
      return send({ method: 'POST', url: listUrl, body, signal, read })
    },
    async read(input, { signal } = {}) {
      const id = parseId(input)
      const read = (body: unknown) => parse(body, id)
      return send({ method: 'GET', url: itemUrl(id), signal, read })
    },
    async *pages(query = {}, options) {
      let { after } = query
      do {
        const { items, next } = await client.list({ ...query, after }, options)
        yield items
        after = next
      } while (after !== undefined)
    },
    async replace(input, callOptions = {}) {
      const item = parse(input)
      const { id, ...rest } = item
      const read = (body: unknown, answer: Answer): Replaced<Item> => ({
        item: parse(body, id),
        version: readVersion(answer),
        created: answer.status === 201,
      })
      const request = {
        ...conditionalRequest(callOptions),
        url: itemUrl(id),
        read,
      } as const
      const body = writeJsonRecord(rest)
      return send({ ...request, method: 'PUT', body }).catch(async error => {
        const current = await itemAfter(error, client, id, callOptions)
        if (current !== 'missing' && isSame(current.item, item)) {
          return { ...current, created: callOptions.ifNoneMatch === '*' }
        }
        throw error
      })
    },
    async remove(input, callOptions = {}) {
      const id = parseId(input)
      const request = {
        ...conditionalRequest(callOptions),
        url: itemUrl(id),
        read() {},
      } as const
      await send({ ...request, method: 'DELETE' }).catch(async error => {
        const current = await itemAfter(error, client, id, callOptions)
        if (current !== 'missing') {
          throw error
        }
      })
    },
  }
  return client
}

/** @throws TypeError if the body is no list */
function readList(body: unknown): readonly unknown[] {
  if (!Array.isArray(body)) {
    throw new TypeError('the answer must be a list')
  }
  return body
}

/**
 * Returns after which id the next page begins, if the `Link` field names one (RFC 8288).
 */
function readNext<Id>(link: string | null, parseId: (id: bigint) => Id) {
  const [, after] = /[?&]after=(-?\d+)[^>]*>;\s*rel="next"/.exec(link ?? '') ?? []
  return after === undefined ? {} : { next: parseId(BigInt(after)) }
}

function readTotal(field: string | null): { readonly total?: Total } {
  if (field === null) {
    return {}
  }
  return { total: field.endsWith('+') ? `${totalMax}+` : Number(field) }
}

/**
 * Resolves to the item as it is now if a lost answer may explain the failure of a change.
 *
 * @throws the failure if it may not, or if the item cannot be read
 */
async function itemAfter<Item extends Identified>(
  failure: unknown,
  client: Pick<EntityClient<Item, never>, 'readVersioned'>,
  id: bigint,
  options: CallOptions,
) {
  if (!(failure instanceof RefusedError && failure.mayHaveChanged)) {
    throw failure
  }
  if (isMissing(failure)) {
    return 'missing'
  }
  if (failure.number !== errorNumbers['condition-failed']) {
    throw failure
  }
  try {
    return await client.readVersioned(id, options)
  } catch (error) {
    options.signal?.throwIfAborted()
    if (isMissing(error)) {
      return 'missing'
    }
    throw failure
  }
}

/**
 * Returns whether an error says that there is no item. Each entity has its own number for
 * it.
 */
function isMissing(error: unknown) {
  return (
    error instanceof RefusedError &&
    error.status === 404 &&
    error.number !== errorNumbers['no-such-path']
  )
}

/**
 * The end that proxies give an entity tag when they compress, such as Apache, Caddy and
 * Jetty.
 */
const codingSuffix = /(?:--?|;)(?:gzip|br|zstd|deflate)$/

/**
 * Returns the version in the entity tag of an answer. A proxy that compresses may have
 * made it weak, or may have added the coding.
 *
 * @throws TypeError if it has none
 */
export function readVersion({ headers }: Answer): Version {
  const tag = /^(?:W\/)?"(.*)"$/.exec(headers.get('etag') ?? '')?.[1]
  const version = tag?.replace(codingSuffix, '')
  if (!isVersion(version)) {
    throw new TypeError('the answer must have the ETag of an item')
  }
  return version
}

/**
 * Returns what a conditional change sends.
 *
 * @throws TypeError for a text that is not a version, which could mean something else
 *   between quotation marks
 */
function conditionalRequest({ ifMatch, ifNoneMatch, signal }: ChangeOptions) {
  if (ifMatch !== undefined && !isVersion(ifMatch)) {
    throw new TypeError('ifMatch must be a Version')
  }
  if (ifNoneMatch !== undefined && ifNoneMatch !== '*') {
    throw new TypeError('ifNoneMatch must be "*"')
  }
  const headers: Readonly<Record<string, string>> = {
    ...(ifMatch !== undefined && { 'if-match': `"${ifMatch}"` }),
    ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
  }
  return { headers, signal }
}
