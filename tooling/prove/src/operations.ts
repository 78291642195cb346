import { type Client, jsonOf, toJson } from '@plant-store/http/testing'
import {
  type History,
  type Kind,
  type Outcome,
  type Text,
  toValue,
  type Value,
} from './history.ts'

/** The operations of a store. */
export interface Operations {
  /**
   * @param expected the version to change; `undefined`: a conditional replacement only
   *   creates
   */
  act(kind: Kind, id: bigint, text?: Text, expected?: string): Promise<Outcome>
  /**
   * Resolves to the plants above `after` in order of id, or to `undefined` without an
   * answer.
   */
  list(query: {
    after: bigint
    limit: number
    tag?: string | undefined
  }): Promise<Listed | undefined>
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

const methods: Readonly<Record<Kind, string>> = {
  create: 'POST',
  read: 'GET',
  replace: 'PUT',
  replaceIf: 'PUT',
  remove: 'DELETE',
  removeIf: 'DELETE',
}
const isConditional = (kind: Kind) => kind.endsWith('If')

let conditions = 0

/**
 * Returns the tags of a condition, or `undefined` to match no plant. Every other time it
 * is two, which a store may judge differently.
 */
function tagsOf(kind: Kind, expected: string | undefined): readonly string[] | undefined {
  if (kind === 'replaceIf' && expected === undefined) {
    return undefined
  }
  // A client that has read no plant knows no version.
  const version = expected ?? 'none'
  return conditions++ % 2 === 0 ? [version] : [version, 'another']
}

function headersOf(
  tags: readonly string[] | undefined,
): Readonly<Record<string, string>> {
  if (tags === undefined) {
    return { 'if-none-match': '*' }
  }
  const list = tags.map(tag => `"${tag}"`).join(', ')
  return list === '' ? {} : { 'if-match': list }
}

type Answer = Awaited<ReturnType<Client['ask']>>

interface Answered extends Outcome {
  readonly body?: unknown
}

/** Stands for the answer of a server that was killed, which ends the connection. */
function noAnswer(error: { readonly code?: string }): undefined {
  if (!['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(`${error.code}`)) {
    throw error
  }
}

/** @throws Error for an answer that an outage of the store cannot explain */
function outcomeOf(asked: string, answer: Answer): Answered {
  if (answer.status === 204) {
    return { is: 'done' }
  }
  const body = jsonOf(answer) as { error?: bigint }
  const version = answer.headers.get('etag')?.slice(1, -1)
  if (answer.status === 200 || answer.status === 201) {
    const created = asked.startsWith('PUT ') && { created: answer.status === 201 }
    return { is: 'done', body, ...(version !== undefined && { version }), ...created }
  }
  const is = outcomes[`${body.error}`]
  if (is === undefined) {
    throw new Error(`${asked} was answered with ${answer.status} ${answer.body}`)
  }
  return { is }
}

/** Throws for an answer that an outage of the store cannot explain. */
export function operationsOver(client: Client): Operations {
  const ask = async (
    method: string,
    path: string,
    plant?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answered> => {
    const body = plant && { body: toJson(plant) }
    const asked = client.ask(method, path, { headers, ...body })
    const answer = await asked.catch(noAnswer)
    return answer === undefined
      ? { is: 'unknown' }
      : outcomeOf(`${method} ${path}`, answer)
  }
  return {
    async act(kind, id, text, expected) {
      const tags = isConditional(kind) ? tagsOf(kind, expected) : []
      const headers = headersOf(tags)
      const asked =
        kind === 'create'
          ? ask('POST', '/plants', { id, ...text }, headers)
          : ask(
              methods[kind],
              `/plants/${id}`,
              methods[kind] === 'PUT' ? text : undefined,
              headers,
            )
      const { body, ...outcome } = await asked
      return kind === 'read' && outcome.is === 'done'
        ? { ...outcome, seen: toValue(body as Text) }
        : outcome
    },
    async list({ after, limit, tag }) {
      const filter = tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`
      const target = `/plants?after=${after}&limit=${limit}${filter}`
      const { is, body } = await ask('GET', target)
      if (is !== 'done') {
        return
      }
      const plants = body as readonly (Text & { id: bigint })[]
      return plants.map(plant => [plant.id, toValue(plant)])
    },
  }
}

/**
 * Returns a client that records outcomes, and remembers what it read: conditional
 * operations expect that.
 */
export function recorded(operations: Operations, history: History) {
  return (kind: Kind, id: bigint, text: Text): Promise<Outcome> => {
    const expected = isConditional(kind) ? history.lastSeen(id) : undefined
    const written = ['POST', 'PUT'].includes(methods[kind]) ? toValue(text) : undefined
    const act = () => operations.act(kind, id, text, expected?.version)
    return history.perform({ id, kind, written, expected: expected?.value }, act)
  }
}

export type Act = ReturnType<typeof recorded>
