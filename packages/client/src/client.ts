import {
  isPlantVersion,
  isSamePlant,
  type Plant,
  type PlantId,
  type PlantPage,
  type PlantVersion,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
  type VersionedPlant,
} from '@plant-store/domain'
import { type CreateManyOptions, createMany, type ManyCreated } from './create-many.ts'
import { errorNumbers } from './error-numbers.ts'
import { RefusedError } from './errors.ts'
import { writeExactJson } from './exact-json.ts'
import { createSend, type SendOptions } from './send.ts'

/**
 * The operations of a plant store. Each rejects with DomainError (`invalid-plant`, `invalid-plant-id`,
 * `invalid-plant-query`) before anything is sent, with RefusedError if the store refuses, with NoAnswerError if the
 * outcome is unknown, or with the signal's reason.
 */
export interface PlantClient {
  /** Is not repeated once a first attempt may have created the plant. The error then has `mayHaveChanged`. */
  create(plant: PlantInput, options?: CallOptions): Promise<Plant>
  /**
   * Creates any number of plants in few requests, and resolves to the outcome. A refused plant does not keep the others
   * from being created. Failed requests are repeated. If it rejects, some plants may have been created, and it is safe
   * to call again with the same plants.
   */
  createMany(
    plants: AsyncIterable<PlantInput> | Iterable<PlantInput>,
    options?: CreateManyOptions,
  ): Promise<ManyCreated>
  read(id: bigint, options?: CallOptions): Promise<Plant>
  /** Resolves to the plant with the version for `ifMatch`. */
  readVersioned(id: bigint, options?: CallOptions): Promise<VersionedPlant>
  /** Resolves to one page, in ascending numeric order of id. */
  list(query?: PlantListQuery, options?: CallOptions): Promise<PlantPage>
  /** Yields page after page. Requests the next page only when the caller wants it. */
  pages(query?: PlantListQuery, options?: CallOptions): AsyncGenerator<readonly Plant[], void, void>
  /**
   * Creates or replaces. With a condition, repeated attempts overwrite nothing else. An attempt without an answer may
   * have made the change. If the next gets 412, the plant is read: the call resolves if the plant is as requested, and
   * otherwise rejects with that refusal and `mayHaveChanged`.
   */
  replace(plant: PlantInput, options?: ReplaceOptions): Promise<VersionedPlant>
  /**
   * Resolves once the plant is gone, even if an earlier attempt without an answer removed it. A repeated attempt also
   * removes a plant that another client created under this id in between, unless `ifMatch` excludes it.
   */
  remove(id: bigint, options?: RemoveOptions): Promise<void>
}

/** A plant in plain values. An optional member may be `undefined`. */
export type PlantInput = {
  readonly [Field in keyof Plant]:
    | Plain<Plant[Field]>
    | (object extends Pick<Plant, Field> ? undefined : never)
}
type Plain<Value> = Value extends bigint ? bigint : Value extends string ? string : Value

export interface PlantListQuery {
  /** From 1 to 1000, by default 100. */
  readonly limit?: number | undefined
  /** Only greater ids. */
  readonly after?: bigint | undefined
  readonly tag?: string | undefined
}

export interface CallOptions {
  /** Aborts the call, including its waits between attempts. A change may have been made. */
  readonly signal?: AbortSignal | undefined
}

export interface RemoveOptions extends CallOptions {
  /** Changes only this version of the plant, and otherwise rejects with RefusedError 412 (`condition-failed`). */
  readonly ifMatch?: PlantVersion | undefined
}

export interface ReplaceOptions extends RemoveOptions {
  /** Creates only, and rejects with RefusedError 412 (`condition-failed`) if the plant exists. */
  readonly ifNoneMatch?: '*' | undefined
}

export interface PlantClientOptions extends Pick<SendOptions, 'token'>, Partial<Omit<SendOptions, 'token'>> {
  /** The part before `/plants`. */
  readonly baseUrl: string | URL
}

export function createPlantClient({
  baseUrl,
  timeoutMs = 10_000,
  fetch = globalThis.fetch,
  ...given
}: PlantClientOptions): PlantClient {
  const plantsUrl = new URL(`${new URL(baseUrl).href.replace(/\/$/, '')}/plants`)
  const batchUrl = new URL(`${plantsUrl.href}/batch`)
  const plantUrl = (id: PlantId) => new URL(`${plantsUrl.href}/${id}`)
  const limits = { attemptsMax: 4, backOffMs: 100, backOffMsMax: 5_000, retryAfterMsMax: 30_000 }
  // Browsers refuse a `fetch` that is called as a method of another object.
  const send = createSend({ ...limits, ...given, timeoutMs, fetch: (url, init) => fetch(url, init) })

  const readPage = (url: URL, options: CallOptions | undefined) =>
    send({
      method: 'GET',
      url,
      options,
      read: (body, headers) => ({ plants: parsePlants(body), next: nextPage(headers.get('link'), url) }),
    })

  const readVersioned: PlantClient['readVersioned'] = async (input, options) => {
    const id = parsePlantId(input)
    return send({ method: 'GET', url: plantUrl(id), options, read: versioned(id) })
  }

  return {
    readVersioned,
    async create(input, options) {
      const plant = parsePlant(input)
      const body = writeExactJson(plant)
      return send({ method: 'POST', url: plantsUrl, body, options, read: body => parsePlant(body, plant.id) })
    },
    createMany: (plants, options) => createMany(send, batchUrl, plants, options),
    async read(input, options) {
      const id = parsePlantId(input)
      return send({ method: 'GET', url: plantUrl(id), options, read: body => parsePlant(body, id) })
    },
    async list(query, options) {
      const { plants, next } = await readPage(listUrl(plantsUrl, query), options)
      const last = plants.at(-1)
      return next === undefined || last === undefined ? { plants } : { plants, next: last.id }
    },
    async *pages(query, options) {
      let url: URL | undefined = listUrl(plantsUrl, query)
      while (url !== undefined) {
        const page: { plants: readonly Plant[]; next: URL | undefined } = await readPage(url, options)
        yield page.plants
        url = page.next
      }
    },
    async replace(input, options) {
      const plant = parsePlant(input)
      const { id, ...rest } = plant
      const settle = async ({ number }: RefusedError) => {
        if (number !== errorNumbers['condition-failed']) return undefined
        const found = await readVersioned(id, options).catch(() => undefined)
        return found && isSamePlant(found.plant, plant) ? found : undefined
      }
      const headers = conditionOf(options)
      const body = writeExactJson(rest)
      return send({ method: 'PUT', url: plantUrl(id), headers, body, options, read: versioned(id), settle })
    },
    async remove(input, options) {
      const id = parsePlantId(input)
      const isGone = async ({ number }: RefusedError): Promise<boolean> => {
        if (number === errorNumbers['plant-not-found']) return true
        if (number !== errorNumbers['condition-failed']) return false
        return readVersioned(id, options).then(
          () => false,
          error => error instanceof RefusedError && isGone(error),
        )
      }
      const headers = conditionOf(options)
      await send({ method: 'DELETE', url: plantUrl(id), headers, options, read: () => true, settle: isGone })
    },
  }
}

/** @throws TypeError for a text that is not a version, which could mean something else between quotation marks */
function conditionOf({ ifMatch, ifNoneMatch }: ReplaceOptions = {}): Readonly<Record<string, string>> {
  if (ifMatch !== undefined && !isPlantVersion(ifMatch)) throw new TypeError('ifMatch must be a PlantVersion')
  return {
    ...(ifMatch !== undefined && { 'if-match': `"${ifMatch}"` }),
    ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
  }
}

/** Returns a reader of a plant and its version. A compressing proxy makes the tag weak. */
function versioned(id: PlantId): (body: unknown, headers: Headers) => VersionedPlant {
  return (body, headers) => {
    const version = /^(?:W\/)?"(.*)"$/.exec(headers.get('etag') ?? '')?.[1]
    if (!isPlantVersion(version)) throw new TypeError('the answer must have the ETag of a plant')
    return { plant: parsePlant(body, id), version }
  }
}

function listUrl(plantsUrl: URL, query: PlantListQuery = {}): URL {
  const { limit } = query
  // Refuses what the store would refuse, and leaves defaults to the store.
  parsePlantPageQuery({ ...query, limit: Number.isInteger(limit) ? BigInt(limit as number) : limit })
  const url = new URL(plantsUrl)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, `${value}`)
  }
  return url
}

function parsePlants(body: unknown): readonly Plant[] {
  if (!Array.isArray(body)) throw new TypeError('a page of plants must be an array')
  return body.map(plant => parsePlant(plant))
}

/** Returns the target of the link with rel="next" (RFC 8288). */
function nextPage(link: string | null, from: URL): URL | undefined {
  for (const [, target = '', parameters = ''] of (link ?? '').matchAll(/<([^<>]*)>((?:[^,"]|"[^"]*")*)/g)) {
    if (!/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\b)/i.test(parameters)) continue
    const next = new URL(target, from)
    // The token must not go to another origin.
    if (next.origin !== from.origin) throw new TypeError(`the next page must not be at ${next.origin}`)
    return next
  }
  return undefined
}
