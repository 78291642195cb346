import type { AddOptions, Plant, PlantId, PlantPage, Version, VersionedPlant } from '@plant-store/domain'
import { isSamePlant, isVersion, parsePlant, parsePlantId, parsePlantPageQuery } from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import { createMany, type ManyCreated } from './create-many.ts'
import { errorNumbers, RefusedError } from './errors.ts'
import { createSend, type PlantClientOptions } from './send.ts'

/**
 * The operations of a plant store. Each rejects with DomainError (`invalid-plant`, `invalid-plant-id`,
 * `invalid-plant-query`) before anything is sent, with RefusedError if the store refuses, with NoAnswerError if the
 * outcome is unknown, or with the signal's reason.
 */
export interface PlantClient {
  /** Is not repeated once a first attempt may have created the plant. The error then has `mayHaveChanged`. */
  create(plant: PlantInput, options?: CallOptions): Promise<Plant>
  /**
   * Creates any number of plants in few requests. A refused plant does not keep the others from being created. If it
   * rejects, some plants may have been created, and it is safe to call again with the same plants.
   */
  createMany(
    plants: AsyncIterable<PlantInput> | Iterable<PlantInput>,
    options?: CallOptions & AddOptions,
  ): Promise<ManyCreated>
  read(id: bigint, options?: CallOptions): Promise<Plant>
  /** Resolves to the plant with the version for `ifMatch`. */
  readVersioned(id: bigint, options?: CallOptions): Promise<VersionedPlant>
  /** Resolves to one page, in ascending numeric order of id. */
  list(query?: PlantListQuery, options?: CallOptions): Promise<PlantPage>
  /** Yields page after page. Requests the next page only when the caller wants it. */
  pages(query?: PlantListQuery, options?: CallOptions): AsyncGenerator<readonly Plant[], void, void>
  /**
   * Creates or replaces. With a condition, repeated attempts overwrite nothing else. If one gets 412 after an attempt
   * without an answer, the plant is read: the call resolves if the plant is as requested.
   */
  replace(plant: PlantInput, options?: ChangeOptions): Promise<VersionedPlant>
  /**
   * Resolves once the plant is gone, even if an earlier attempt without an answer removed it. A repeated attempt also
   * removes a plant that another client created under this id in between, unless `ifMatch` excludes it.
   */
  remove(id: bigint, options?: Omit<ChangeOptions, 'ifNoneMatch'>): Promise<void>
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

export interface ChangeOptions extends CallOptions {
  /** Changes only this version of the plant, and otherwise rejects with RefusedError 412 (`condition-failed`). */
  readonly ifMatch?: Version | undefined
  /** Creates only, and rejects with RefusedError 412 (`condition-failed`) if the plant exists. */
  readonly ifNoneMatch?: '*' | undefined
}

export function createPlantClient(options: PlantClientOptions): PlantClient {
  const send = createSend(options)
  const plantsUrl = `${new URL(options.baseUrl).href.replace(/\/$/, '')}/plants`
  const plantUrl = (id: PlantId) => `${plantsUrl}/${id}`

  async function readVersioned(input: bigint, { signal }: CallOptions = {}) {
    const id = parsePlantId(input)
    return send({ method: 'GET', url: plantUrl(id), signal, read: versioned(id) })
  }

  async function list(query: PlantListQuery = {}, { signal }: CallOptions = {}): Promise<PlantPage> {
    const url = new URL(plantsUrl)
    for (const [name, value] of Object.entries(parsePlantPageQuery(query)))
      url.searchParams.set(name, `${value}`)
    const read = (body: unknown, headers: Headers) => {
      const plants = (body as unknown[]).map(plant => parsePlant(plant))
      const last = plants.at(-1)
      const hasNext = /;\s*rel="next"/.test(headers.get('link') ?? '')
      return last && hasNext ? { plants, next: last.id } : { plants }
    }
    return send({ method: 'GET', url, signal, read })
  }

  /** Returns the plant as it is now if a lost answer may explain the failure of a change. Otherwise throws it. */
  async function plantAfter(error: unknown, id: PlantId, options: CallOptions) {
    if (!(error instanceof RefusedError && error.mayHaveChanged)) throw error
    try {
      if (error.number !== errorNumbers['condition-failed']) throw error
      return await readVersioned(id, options)
    } catch (cause) {
      options.signal?.throwIfAborted()
      if (cause instanceof RefusedError && cause.number === errorNumbers['plant-not-found']) return 'missing'
      throw error
    }
  }

  return {
    readVersioned,
    list,
    async create(input, { signal } = {}) {
      const plant = parsePlant(input)
      const body = writeJsonRecord(plant)
      return send({ method: 'POST', url: plantsUrl, body, signal, read: body => parsePlant(body, plant.id) })
    },
    createMany(plants, { announce = true, signal } = {}) {
      const url = `${plantsUrl}/batch${announce ? '' : '?announce=false'}`
      const headers = { 'content-type': 'application/x-ndjson' }
      const request = { url, headers, mayRepeat: true, signal }
      return createMany(plants, (body, read) => send({ method: 'POST', ...request, body, read }))
    },
    async read(input, { signal } = {}) {
      const id = parsePlantId(input)
      return send({ method: 'GET', url: plantUrl(id), signal, read: body => parsePlant(body, id) })
    },
    async *pages(query = {}, options) {
      let { after } = query
      do {
        const { plants, next }: PlantPage = await list({ ...query, after }, options)
        yield plants
        after = next
      } while (after !== undefined)
    },
    async replace(input, options = {}) {
      const plant = parsePlant(input)
      const { id, ...rest } = plant
      const request = { url: plantUrl(id), body: writeJsonRecord(rest), read: versioned(id) }
      return send({ method: 'PUT', ...request, ...conditional(options) }).catch(async error => {
        const found = await plantAfter(error, id, options)
        if (found !== 'missing' && isSamePlant(found.plant, plant)) return found
        throw error
      })
    },
    async remove(input, options = {}) {
      const id = parsePlantId(input)
      const request = { url: plantUrl(id), read: () => {} }
      await send({ method: 'DELETE', ...request, ...conditional(options) }).catch(async error => {
        if ((await plantAfter(error, id, options)) !== 'missing') throw error
      })
    },
  }
}

/** @throws TypeError for a text that is not a version, which could mean something else between quotation marks */
function conditional({ ifMatch, ifNoneMatch, signal }: ChangeOptions) {
  if (ifMatch !== undefined && !isVersion(ifMatch)) throw new TypeError('ifMatch must be a Version')
  const match = ifMatch !== undefined && { 'if-match': `"${ifMatch}"` }
  return { signal, headers: { ...match, ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }) } }
}

/** Returns a reader of a plant and its version. A compressing proxy makes the tag weak. */
function versioned(id: PlantId): (body: unknown, headers: Headers) => VersionedPlant {
  return (body, headers) => {
    const version = /^(?:W\/)?"(.*)"$/.exec(headers.get('etag') ?? '')?.[1]
    if (!isVersion(version)) throw new TypeError('the answer must have the ETag of a plant')
    return { plant: parsePlant(body, id), version }
  }
}
