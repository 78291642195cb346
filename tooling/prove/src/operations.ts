import { type Client, held, toJson } from '@plant-store/contract'
import {
  DomainError,
  type PlantStore,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
} from '@plant-store/domain'
import { type History, type Outcome, toValue, type Value } from './history.ts'

export interface Text {
  readonly name: string
  readonly tag?: string
}

/** The operations of a store, over HTTP or without it, each told as what its answer says of one id. */
export interface Operations {
  create(id: bigint, text: Text): Promise<Outcome>
  read(id: bigint): Promise<Outcome>
  replace(id: bigint, text: Text): Promise<Outcome>
  remove(id: bigint): Promise<Outcome>
  /** The plants above `after`, in the order of their ids; `undefined` when there was no answer. */
  list(query: { after: bigint; limit: number; tag?: string }): Promise<Listed | undefined>
}

export type Listed = readonly (readonly [id: bigint, value: Value])[]

/** An answer that can't come of the store itself being in trouble is a failure, and thrown. */
export function operationsOver(client: Client): Operations {
  const ask = async (method: string, path: string, plant?: object): Promise<Outcome & { body?: unknown }> => {
    let answer: Awaited<ReturnType<Client['ask']>>
    try {
      answer = await client.ask(method, path, plant === undefined ? {} : { body: toJson(plant) })
    } catch (error) {
      if (isCut(error)) return { is: 'unknown' }
      throw error
    }
    if (answer.status === 204) return { is: 'done' }
    const body = held(answer) as { error?: bigint; name?: string }
    if (answer.status === 200) return { is: 'done', body }
    if (body.error === 40003n) return { is: 'taken' }
    if (body.error === 40402n) return { is: 'absent' }
    if ([50301n, 50303n, 50304n, 50305n].includes(body.error ?? 0n)) return { is: 'refused' }
    if (body.error === 50302n) return { is: 'unknown' }
    throw new Error(`${method} ${path} was answered with ${answer.status} ${answer.body}`)
  }
  const done = ({ is }: Outcome): Outcome => ({ is }) as Outcome
  return {
    create: async (id, text) => done(await ask('POST', '/plants', { id, ...text })),
    async read(id) {
      const outcome = await ask('GET', `/plants/${id}`)
      return outcome.is === 'done' ? { is: 'done', seen: toValue(outcome.body as Text) } : outcome
    },
    replace: async (id, text) => done(await ask('PUT', `/plants/${id}`, text)),
    remove: async id => done(await ask('DELETE', `/plants/${id}`)),
    async list({ after, limit, tag }) {
      const filter = tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`
      const outcome = await ask('GET', `/plants?after=${after}&limit=${limit}${filter}`)
      if (outcome.is !== 'done') return undefined
      return (outcome.body as (Text & { id: bigint })[]).map(plant => [plant.id, toValue(plant)])
    },
  }
}

/** Whether the connection ended, as it does when the other side is killed. */
function isCut(error: unknown): boolean {
  const { code } = error as { code?: string }
  return code === 'ECONNRESET' || code === 'ECONNREFUSED' || code === 'EPIPE'
}

/** The same without HTTP, for any repository behind the domain. */
export function operationsOn(store: PlantStore): Operations {
  const told = async (act: () => Promise<Outcome>): Promise<Outcome> => {
    try {
      return await act()
    } catch (error) {
      const code = error instanceof DomainError ? error.code : undefined
      if (code === 'id-taken') return { is: 'taken' }
      if (code === 'plant-not-found') return { is: 'absent' }
      throw error
    }
  }
  const plant = (id: bigint, text: Text) => parsePlant({ id, ...text })
  return {
    create: (id, text) => told(() => store.create(plant(id, text)).then(() => ({ is: 'done' }))),
    read: id => told(async () => ({ is: 'done', seen: toValue(await store.find(parsePlantId(id))) })),
    replace: (id, text) => told(() => store.replace(plant(id, text)).then(() => ({ is: 'done' }))),
    remove: id => told(() => store.remove(parsePlantId(id)).then(() => ({ is: 'done' }))),
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
