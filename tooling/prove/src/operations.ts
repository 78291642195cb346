import { type Answer, type Client, jsonOf, toJson } from '@plant-store/http/testing'
import { type History, type Kind, type Outcome, type Text, toValue } from './history.ts'

/** The operations of a store. */
export type Operations = ReturnType<typeof operationsOver>

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
 * Returns the header field of a condition. Every other time it has two tags, which a
 * store may judge differently.
 */
function conditionOf(
  kind: Kind,
  expected: string | undefined,
): Readonly<Record<string, string>> {
  if (!isConditional(kind)) {
    return {}
  }
  if (kind === 'replaceIf' && expected === undefined) {
    return { 'if-none-match': '*' }
  }
  // A client that has read no plant knows no version.
  const tag = `"${expected ?? 'none'}"`
  return { 'if-match': conditions++ % 2 === 0 ? tag : `${tag}, "another"` }
}

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
    return { is: 'done', body, version, ...created }
  }
  const is = outcomes[`${body.error}`]
  if (is === undefined) {
    throw new Error(`${asked} was answered with ${answer.status} ${answer.body}`)
  }
  return { is }
}

/** Throws for an answer that an outage of the store cannot explain. */
export function operationsOver(client: Client) {
  const ask = async (
    method: string,
    path: string,
    plant?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answered> => {
    const body = plant && { body: toJson(plant) }
    const answer = await client.ask(method, path, { headers, ...body }).catch(noAnswer)
    return answer ? outcomeOf(`${method} ${path}`, answer) : { is: 'unknown' }
  }
  return {
    /**
     * @param text what a create or a replacement writes
     * @param expected the version to change; `undefined`: a conditional replacement only
     *   creates
     */
    async act(kind: Kind, id: bigint, text?: Text, expected?: string): Promise<Outcome> {
      const [path, plant] =
        kind === 'create' ? ['/plants', { id, ...text }] : [`/plants/${id}`, text]
      const headers = conditionOf(kind, expected)
      const { body, ...outcome } = await ask(methods[kind], path, plant, headers)
      return kind === 'read' && outcome.is === 'done'
        ? { ...outcome, seen: toValue(body as Text) }
        : outcome
    },
    /**
     * Resolves to the plants above `after` in order of id, or to `undefined` without an
     * answer.
     */
    async list(after: bigint, limit: number, tag?: string) {
      const filter = tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`
      const target = `/plants?after=${after}&limit=${limit}${filter}`
      const { is, body } = await ask('GET', target)
      if (is !== 'done') {
        return
      }
      const plants = body as readonly (Text & { id: bigint })[]
      return plants.map(plant => [plant.id, toValue(plant)] as const)
    },
  }
}

/**
 * Returns a client that records outcomes, and remembers what it read: conditional
 * operations expect that.
 */
export function recorded(operations: Operations, history: History) {
  return (kind: Kind, id: bigint, text: Text): Promise<Outcome> => {
    const expected = isConditional(kind) ? history.lastSeen.get(id) : undefined
    const sent = ['POST', 'PUT'].includes(methods[kind]) ? text : undefined
    const written = sent && toValue(sent)
    const act = () => operations.act(kind, id, sent, expected?.version)
    return history.perform({ id, kind, written, expected: expected?.value }, act)
  }
}

export type Act = ReturnType<typeof recorded>
