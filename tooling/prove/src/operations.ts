import { type Client, held, toJson } from '@plant-store/contract'
import {
  DomainError,
  isPlantVersion,
  type PlantCondition,
  type PlantStore,
  type PlantVersion,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import { type History, type Kind, type Outcome, type Text, toValue, type Value } from './history.ts'

/** The operations of a store, over HTTP or without it. */
export interface Operations {
  create(id: bigint, text: Text): Promise<Outcome>
  read(id: bigint): Promise<Outcome>
  replace(id: bigint, text: Text): Promise<Outcome>
  /** @param expected the version to replace; `undefined`: only creates */
  replaceIf(id: bigint, text: Text, expected: string | undefined): Promise<Outcome>
  remove(id: bigint): Promise<Outcome>
  removeIf(id: bigint, expected: string): Promise<Outcome>
  /** Resolves to the plants above `after` in order of id, or to `undefined` without an answer. */
  list(query: { after: bigint; limit: number; tag?: string | undefined }): Promise<Listed | undefined>
}

export type Listed = readonly (readonly [id: bigint, value: Value])[]

const outcomes: Readonly<Record<string, Outcome['is']>> = {
  40003: 'taken',
  40402: 'absent',
  41201: 'differs',
  50301: 'refused',
  50302: 'unknown',
  50303: 'refused',
  50304: 'refused',
  50305: 'refused',
}

/** For a client that remembers what it read. */
export type RecordedOperations = Pick<Operations, 'list'> & {
  readonly [kind in Kind]: (id: bigint, text: Text) => Promise<Outcome>
}

/** For a client that has read no plant. */
const noVersion = 'none'

/** Throws for an answer that an outage of the store cannot explain. */
export function operationsOver(client: Client): Operations {
  const ask = async (
    method: string,
    path: string,
    plant?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Outcome & { body?: unknown }> => {
    let answer: Awaited<ReturnType<Client['ask']>>
    try {
      answer = await client.ask(method, path, { headers, ...(plant && { body: toJson(plant) }) })
    } catch (error) {
      // The connection ends if the server is killed.
      if (['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(`${(error as { code?: string }).code}`))
        return { is: 'unknown' }
      throw error
    }
    if (answer.status === 204) return { is: 'done' }
    const body = held(answer) as { error?: bigint }
    const version = answer.headers.get('etag')?.slice(1, -1)
    if (answer.status === 200) return { is: 'done', body, ...(version !== undefined && { version }) }
    const is = outcomes[`${body.error}`]
    if (is === undefined)
      throw new Error(`${method} ${path} was answered with ${answer.status} ${answer.body}`)
    return { is }
  }
  const change = async (...asked: Parameters<typeof ask>): Promise<Outcome> => {
    const { body: _, ...outcome } = await ask(...asked)
    return outcome
  }
  const conditionOf = (expected: string | undefined) =>
    expected === undefined ? { 'if-none-match': '*' } : { 'if-match': listOf(expected).join(', ') }
  return {
    create: (id, text) => change('POST', '/plants', { id, ...text }),
    async read(id) {
      const { body, ...outcome } = await ask('GET', `/plants/${id}`)
      return outcome.is === 'done' ? { ...outcome, seen: toValue(body as Text) } : outcome
    },
    replace: (id, text) => change('PUT', `/plants/${id}`, text),
    replaceIf: (id, text, expected) => change('PUT', `/plants/${id}`, text, conditionOf(expected)),
    remove: id => change('DELETE', `/plants/${id}`),
    removeIf: (id, expected) => change('DELETE', `/plants/${id}`, undefined, conditionOf(expected)),
    async list({ after, limit, tag }) {
      const filter = tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`
      const { is, body } = await ask('GET', `/plants?after=${after}&limit=${limit}${filter}`)
      if (is !== 'done') return undefined
      return (body as (Text & { id: bigint })[]).map(plant => [plant.id, toValue(plant)])
    },
  }
}

let conditions = 0

/** Every other time two tags, which a store may judge differently. */
const listOf = (version: string) =>
  conditions++ % 2 === 0 ? [`"${version}"`] : [`"${version}"`, '"another"']

/** Returns the same operations without HTTP, for any repository behind the domain. */
export function operationsOn(store: PlantStore): Operations {
  const outcomeOf = (acting: Promise<unknown>): Promise<Outcome> =>
    acting.then(
      version => ({ is: 'done', ...(isPlantVersion(version) && { version }) }),
      error => {
        const code = error instanceof DomainError ? error.code : undefined
        if (code === 'id-taken') return { is: 'taken' }
        if (code === 'plant-not-found') return { is: 'absent' }
        if (code === 'condition-failed') return { is: 'differs' }
        throw error
      },
    )
  const conditionOf = (expected: string | undefined): PlantCondition =>
    expected === undefined
      ? { differs: 'any' }
      : { matches: listOf(expected).map(tag => tag.slice(1, -1) as PlantVersion) }
  return {
    create: (id, text) => outcomeOf(store.create(parsePlant({ id, ...text }))),
    async read(id) {
      const reading = store.find(parsePlantId(id))
      const outcome = await outcomeOf(reading.then(({ version }) => version))
      return outcome.is === 'done' ? { ...outcome, seen: toValue((await reading).plant) } : outcome
    },
    replace: (id, text) => outcomeOf(store.replace(parsePlant({ id, ...text }))),
    replaceIf: (id, text, expected) =>
      outcomeOf(store.replace(parsePlant({ id, ...text }), conditionOf(expected))),
    remove: id => outcomeOf(store.remove(parsePlantId(id))),
    removeIf: (id, expected) => outcomeOf(store.remove(parsePlantId(id), conditionOf(expected))),
    async list({ after, limit, tag }) {
      const { plants } = await store.list(parsePlantPageQuery({ after, limit: BigInt(limit), tag }))
      return plants.map(each => [each.id, toValue(each)])
    },
  }
}

/** Returns the operations with their outcomes recorded. Conditional ones expect the version read last. */
export function recorded(operations: Operations, history: History): RecordedOperations {
  return {
    create: (id, text) => history.perform(id, 'create', toValue(text), () => operations.create(id, text)),
    read: id => history.perform(id, 'read', undefined, () => operations.read(id)),
    replace: (id, text) => history.perform(id, 'replace', toValue(text), () => operations.replace(id, text)),
    replaceIf(id, text) {
      const { value, version } = history.lastSeen(id) ?? {}
      return history.perform(
        id,
        'replaceIf',
        toValue(text),
        () => operations.replaceIf(id, text, version),
        value,
      )
    },
    remove: id => history.perform(id, 'remove', undefined, () => operations.remove(id)),
    removeIf(id) {
      const { value, version = noVersion } = history.lastSeen(id) ?? {}
      return history.perform(id, 'removeIf', undefined, () => operations.removeIf(id, version), value)
    },
    list: query => operations.list(query),
  }
}
