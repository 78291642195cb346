import type { Identified, Page, Total, Version } from '@plant-store/domain'
import { isSame, isVersion, totalMax } from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import { errorNumbers, RefusedError } from './errors.ts'
import { type ClientOptions, createSend } from './send.ts'

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

/** What an entity has of its own. */
export interface EntityOptions<Item extends Identified, Query> {
  /** Of the list, such as `/plants`. */
  readonly path: string
  /**
   * Returns the item in an unknown value.
   *
   * @param id the id from elsewhere, such as a path: the value may then lack its own
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

export function createEntityClient<Item extends Identified, Query extends ListQuery>(
  options: ClientOptions & EntityOptions<Item, Query>,
): EntityClient<Item, Query> {
  const { path, parse, parseId, parseQuery } = options
  const send = createSend(options)
  const listUrl = operationUrl(options, path)
  const itemUrl = (id: Item['id']) => `${listUrl}/${id}`

  /** Returns a reader of an item and its version. */
  const versioned = (id: Item['id']) => (body: unknown, headers: Headers) => {
    const version = readVersion(headers.get('etag'))
    return { item: parse(body, id), version }
  }

  async function readVersioned(input: bigint, { signal }: CallOptions = {}) {
    const id = parseId(input)
    return send({ method: 'GET', url: itemUrl(id), signal, read: versioned(id) })
  }

  async function list(
    query: Partial<Query> = {},
    { signal }: CallOptions = {},
  ): Promise<Page<Item>> {
    const url = new URL(listUrl)
    for (const [name, value] of Object.entries(parseQuery(query))) {
      url.searchParams.set(name, `${value}`)
    }
    const read = (body: unknown, headers: Headers) => {
      const items = (body as unknown[]).map(item => parse(item))
      const [, after] =
        /[?&]after=(-?\d+)[^>]*>;\s*rel="next"/.exec(headers.get('link') ?? '') ?? []
      const total = readTotal(headers.get('total-count'))
      return {
        items,
        ...(after !== undefined && { next: parseId(BigInt(after)) }),
        ...(total !== undefined && { total }),
      }
    }
    return send({ method: 'GET', url, signal, read })
  }

  /**
   * Returns the item as it is now if a lost answer may explain the failure of a change.
   * Otherwise throws it.
   */
  async function itemAfter(error: unknown, id: Item['id'], options: CallOptions) {
    if (!(error instanceof RefusedError && error.mayHaveChanged)) {
      throw error
    }
    try {
      if (error.number !== errorNumbers['condition-failed']) {
        throw error
      }
      return await readVersioned(id, options)
    } catch (cause) {
      options.signal?.throwIfAborted()
      if (isMissing(cause)) {
        return 'missing'
      }
      throw error
    }
  }

  return {
    readVersioned,
    list,
    async create(input, { signal } = {}) {
      const item = parse(input)
      const body = writeJsonRecord(item)
      return send({
        method: 'POST',
        url: listUrl,
        body,
        signal,
        read: body => parse(body, item.id),
      })
    },
    async read(input, { signal } = {}) {
      const id = parseId(input)
      return send({
        method: 'GET',
        url: itemUrl(id),
        signal,
        read: body => parse(body, id),
      })
    },
    async *pages(query = {}, options) {
      let { after } = query
      do {
        const { items, next }: Page<Item> = await list({ ...query, after }, options)
        yield items
        after = next
      } while (after !== undefined)
    },
    async replace(input, options = {}) {
      const item = parse(input)
      const { id, ...rest } = item
      const request = {
        url: itemUrl(id),
        body: writeJsonRecord(rest),
        read: versioned(id),
      }
      return send({ method: 'PUT', ...request, ...conditional(options) }).catch(
        async error => {
          const found = await itemAfter(error, id, options)
          if (found !== 'missing' && isSame(found.item, item)) {
            return found
          }
          throw error
        },
      )
    },
    async remove(input, options = {}) {
      const id = parseId(input)
      const request = { url: itemUrl(id), read: () => {} }
      await send({ method: 'DELETE', ...request, ...conditional(options) }).catch(
        async error => {
          if ((await itemAfter(error, id, options)) !== 'missing') {
            throw error
          }
        },
      )
    },
  }
}

/**
 * Returns the URL of an operation below the base URL, which may have a path.
 *
 * @throws TypeError if the base URL is none. The message does not contain it, because it
 *   may have a password
 */
export function operationUrl(
  { baseUrl }: Pick<ClientOptions, 'baseUrl'>,
  path: string,
): string {
  const text = `${baseUrl}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isBaseUrl =
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.username === '' &&
    url.password === '' &&
    !/[?#]/.test(text)
  if (!isBaseUrl) {
    throw new TypeError(
      'baseUrl must be an http or https URL without credentials, query and fragment, such as http://127.0.0.1:3000',
    )
  }
  return url.href.replace(/\/$/, '') + path
}

/**
 * What proxies put behind an entity tag when they compress, such as Apache, Caddy and
 * Jetty.
 */
const codingSuffix = /(?:--?|;)(?:gzip|br|zstd|deflate)$/

/**
 * Returns the version in an entity tag. A proxy that compresses may have made it weak, or
 * may have added the coding.
 *
 * @throws TypeError if it has none
 */
function readVersion(etag: string | null): Version {
  const tag = /^(?:W\/)?"(.*)"$/.exec(etag ?? '')?.[1]
  const version = tag?.replace(codingSuffix, '')
  if (!isVersion(version)) {
    throw new TypeError('the answer must have the ETag of an item')
  }
  return version
}

function readTotal(field: string | null): Total | undefined {
  if (field === null) {
    return undefined
  }
  return field.endsWith('+') ? `${totalMax}+` : Number(field)
}

/** Each entity has a number of its own for this. */
function isMissing(error: unknown): boolean {
  return (
    error instanceof RefusedError &&
    error.status === 404 &&
    error.number !== errorNumbers['no-such-path']
  )
}

/**
 * @throws TypeError for a text that is not a version, which could mean something else
 *   between quotation marks
 */
function conditional({ ifMatch, ifNoneMatch, signal }: ChangeOptions) {
  if (ifMatch !== undefined && !isVersion(ifMatch)) {
    throw new TypeError('ifMatch must be a Version')
  }
  const match = ifMatch !== undefined && { 'if-match': `"${ifMatch}"` }
  return {
    signal,
    headers: {
      ...match,
      ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
    },
  }
}
