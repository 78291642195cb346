import {
  type Plant,
  type PlantId,
  type PlantPage,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import { type CreateManyOptions, createMany, type ManyCreated, toJson } from './create-many.ts'
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
  /** One page, in ascending numeric order of the ids. */
  list(query?: PlantListQuery, options?: CallOptions): Promise<PlantPage>
  /** Page after page, as the store links them; the next one is asked for when it is wanted. */
  pages(query?: PlantListQuery, options?: CallOptions): AsyncGenerator<readonly Plant[], void, void>
  /** Creates or replaces. */
  replace(plant: PlantInput, options?: CallOptions): Promise<Plant>
  /**
   * Resolves when the plant is gone, also when an attempt whose answer was lost had removed it. Repeated then, it also
   * removes a plant that another client created under the id in between; `attemptsMax: 1` rules that out.
   */
  remove(id: bigint, options?: CallOptions): Promise<void>
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

  return {
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
      const { id, ...rest } = parsePlant(input)
      const body = JSON.stringify(rest)
      return send({ method: 'PUT', url: plantUrl(id), body, options, read: body => parsePlant(body, id) })
    },
    async remove(input, options) {
      const id = parsePlantId(input)
      await send({ method: 'DELETE', url: plantUrl(id), options, read: () => undefined })
    },
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
