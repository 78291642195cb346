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
import { type CreateManyOptions, createMany, type ManyCreated, toJson } from './create-many.ts'
import { errorNumbers } from './error-numbers.ts'
import { RefusedError } from './errors.ts'
import { createSend, type SendOptions } from './send.ts'

/**
 * The operations of a plant store. What is sent is judged by the domain's rules first, so each rejects with DomainError
 * (`invalid-plant`, `invalid-plant-id`, `invalid-plant-query`) before anything is sent, with RefusedError when the store
 * refuses, with NoAnswerError when it can't be known what became of the request, and with the signal's reason.
 */
export interface PlantClient {
  /** Never sent a second time once it is unknown whether the first was taken: `mayHaveChanged` then says so. */
  create(plant: PlantInput, options?: CallOptions): Promise<Plant>
  /**
   * Creates any number of plants in few requests, and returns what became of them. One that is refused, by the domain's
   * rules or by the store, does not keep the others from being created. A request is repeated like a replacement; once it
   * rejects, some plants may have been created, and the whole may be done again.
   */
  createMany(
    plants: AsyncIterable<PlantInput> | Iterable<PlantInput>,
    options?: CreateManyOptions,
  ): Promise<ManyCreated>
  read(id: bigint, options?: CallOptions): Promise<Plant>
  /** With the version that `ifMatch` takes. */
  readVersioned(id: bigint, options?: CallOptions): Promise<VersionedPlant>
  /** One page, in ascending numeric order of the ids. */
  list(query?: PlantListQuery, options?: CallOptions): Promise<PlantPage>
  /** Page after page, as the store links them; the next one is asked for when it is wanted. */
  pages(query?: PlantListQuery, options?: CallOptions): AsyncGenerator<readonly Plant[], void, void>
  /**
   * Creates or replaces. With a condition, it overwrites nothing else, however often it is repeated. When an attempt
   * whose answer was lost may have made the change, and the next one is refused with 412, the plant is read: it resolves
   * when the plant is as it was to be, and otherwise rejects with that refusal and `mayHaveChanged`.
   */
  replace(plant: PlantInput, options?: ReplaceOptions): Promise<VersionedPlant>
  /**
   * Resolves when the plant is gone, also when an attempt whose answer was lost had removed it. Repeated then, it also
   * removes a plant that another client created under the id in between, unless `ifMatch` rules that out.
   */
  remove(id: bigint, options?: RemoveOptions): Promise<void>
}

/** A plant in plain values. What it need not have may be `undefined`. */
export type PlantInput = {
  readonly [Field in keyof Plant]:
    | Plain<Plant[Field]>
    | (object extends Pick<Plant, Field> ? undefined : never)
}
type Plain<Value> = Value extends bigint ? bigint : Value extends string ? string : Value

export interface PlantListQuery {
  /** From 1 to 1000; the store takes 100 when it isn't given. */
  readonly limit?: number | undefined
  /** Only ids above this one. */
  readonly after?: bigint | undefined
  /** Only plants with exactly this tag. */
  readonly tag?: string | undefined
}

export interface CallOptions {
  /** Gives the whole call up, its waits between attempts included. A change may then have been made. */
  readonly signal?: AbortSignal | undefined
}

export interface RemoveOptions extends CallOptions {
  /** Changes only this version of the plant: otherwise RefusedError with 412 (`condition-failed`). */
  readonly ifMatch?: PlantVersion | undefined
}

export interface ReplaceOptions extends RemoveOptions {
  /** Only creates: RefusedError with 412 (`condition-failed`) where there is a plant. */
  readonly ifNoneMatch?: '*' | undefined
}

export interface PlantClientOptions extends Pick<SendOptions, 'token'>, Partial<Omit<SendOptions, 'token'>> {
  /** What comes before `/plants`. */
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
  // Called without the client before it: a browser's fetch insists on that.
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
      const body = toJson(plant)
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
      const body = JSON.stringify(rest)
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

/** @throws TypeError for what is no version: it could have another meaning between quotation marks */
function conditionOf({ ifMatch, ifNoneMatch }: ReplaceOptions = {}): Readonly<Record<string, string>> {
  if (ifMatch !== undefined && !isPlantVersion(ifMatch)) throw new TypeError('ifMatch must be a PlantVersion')
  return {
    ...(ifMatch !== undefined && { 'if-match': `"${ifMatch}"` }),
    ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
  }
}

/** Reads a plant and its version. A proxy that compresses makes the tag a weak one. */
function versioned(id: PlantId): (body: unknown, headers: Headers) => VersionedPlant {
  return (body, headers) => {
    const version = /^(?:W\/)?"(.*)"$/.exec(headers.get('etag') ?? '')?.[1]
    if (!isPlantVersion(version)) throw new TypeError('the answer has no entity tag of a plant')
    return { plant: parsePlant(body, id), version }
  }
}

function listUrl(plantsUrl: URL, query: PlantListQuery = {}): URL {
  const { limit } = query
  // Refuses here what the store would refuse; what is left out is left to the store.
  parsePlantPageQuery({ ...query, limit: Number.isInteger(limit) ? BigInt(limit as number) : limit })
  const url = new URL(plantsUrl)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, `${value}`)
  }
  return url
}

function parsePlants(body: unknown): readonly Plant[] {
  if (!Array.isArray(body)) throw new TypeError('a page of plants is an array')
  return body.map(plant => parsePlant(plant))
}

/** The target of the link with rel="next" (RFC 8288). */
function nextPage(link: string | null, from: URL): URL | undefined {
  for (const [, target = '', parameters = ''] of (link ?? '').matchAll(/<([^<>]*)>((?:[^,"]|"[^"]*")*)/g)) {
    if (!/;\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\b)/i.test(parameters)) continue
    const next = new URL(target, from)
    // The token goes where it was meant to go and nowhere else.
    if (next.origin !== from.origin) throw new TypeError(`the next page is said to be at ${next.origin}`)
    return next
  }
  return undefined
}
