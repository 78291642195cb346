import { type Client, held, toJson } from '@plant-store/contract'
import {
  DomainError,
  type PlantStore,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import { type History, type Outcome, type Text, toValue, type Value } from './history.ts'

/** The operations of a store, over HTTP or without it. */
export interface Operations {
  create(id: bigint, text: Text): Promise<Outcome>
  read(id: bigint): Promise<Outcome>
  replace(id: bigint, text: Text): Promise<Outcome>
  remove(id: bigint): Promise<Outcome>
  /** The plants above `after`, in the order of their ids; `undefined` when there was no answer. */
  list(query: { after: bigint; limit: number; tag?: string | undefined }): Promise<Listed | undefined>
}

export type Listed = readonly (readonly [id: bigint, value: Value])[]

const outcomes: Readonly<Record<string, Outcome['is']>> = {
  40003: 'taken',
  40402: 'absent',
  50301: 'refused',
  50302: 'unknown',
  50303: 'refused',
  50304: 'refused',
  50305: 'refused',
}

/** An answer that can't come of the store itself being in trouble is a failure, and thrown. */
export function operationsOver(client: Client): Operations {
  const ask = async (method: string, path: string, plant?: object): Promise<Outcome & { body?: unknown }> => {
    let answer: Awaited<ReturnType<Client['ask']>>
    try {
      answer = await client.ask(method, path, plant && { body: toJson(plant) })
    } catch (error) {
      // The connection ends when the other side is killed.
      if (['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(`${(error as { code?: string }).code}`))
        return { is: 'unknown' }
      throw error
    }
    if (answer.status === 204) return { is: 'done' }
    const body = held(answer) as { error?: bigint }
    if (answer.status === 200) return { is: 'done', body }
    const is = outcomes[`${body.error}`]
    if (is === undefined)
      throw new Error(`${method} ${path} was answered with ${answer.status} ${answer.body}`)
    return { is }
  }
  const change = async (...asked: Parameters<typeof ask>) => ({ is: (await ask(...asked)).is })
  return {
    create: (id, text) => change('POST', '/plants', { id, ...text }),
    async read(id) {
      const { is, body } = await ask('GET', `/plants/${id}`)
      return is === 'done' ? { is, seen: toValue(body as Text) } : { is }
    },
    replace: (id, text) => change('PUT', `/plants/${id}`, text),
    remove: id => change('DELETE', `/plants/${id}`),
    async list({ after, limit, tag }) {
      const filter = tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`
      const { is, body } = await ask('GET', `/plants?after=${after}&limit=${limit}${filter}`)
      if (is !== 'done') return undefined
      return (body as (Text & { id: bigint })[]).map(plant => [plant.id, toValue(plant)])
    },
  }
}

/** The same without HTTP, for any repository behind the domain. */
export function operationsOn(store: PlantStore): Operations {
  const outcomeOf = (acting: Promise<unknown>): Promise<Outcome> =>
    acting.then(
      () => ({ is: 'done' }),
      error => {
        const code = error instanceof DomainError ? error.code : undefined
        if (code === 'id-taken') return { is: 'taken' }
        if (code === 'plant-not-found') return { is: 'absent' }
        throw error
      },
    )
  return {
    create: (id, text) => outcomeOf(store.create(parsePlant({ id, ...text }))),
    async read(id) {
      const reading = store.find(parsePlantId(id))
      const outcome = await outcomeOf(reading)
      return outcome.is === 'done' ? { is: 'done', seen: toValue((await reading).plant) } : outcome
    },
    replace: (id, text) => outcomeOf(store.replace(parsePlant({ id, ...text }))),
    remove: id => outcomeOf(store.remove(parsePlantId(id))),
    async list({ after, limit, tag }) {
      const { plants } = await store.list(parsePlantPageQuery({ after, limit: BigInt(limit), tag }))
      return plants.map(each => [each.id, toValue(each)])
    },
  }
}

/** The operations, with what comes of each written down. */
export function recorded(operations: Operations, history: History): Operations {
  return {
    create: (id, text) => history.perform(id, 'create', toValue(text), () => operations.create(id, text)),
    read: id => history.perform(id, 'read', undefined, () => operations.read(id)),
    replace: (id, text) => history.perform(id, 'replace', toValue(text), () => operations.replace(id, text)),
    remove: id => history.perform(id, 'remove', undefined, () => operations.remove(id)),
    list: query => operations.list(query),
  }
}
