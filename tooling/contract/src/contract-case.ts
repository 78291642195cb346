import assert from 'node:assert/strict'
import type { Client } from './client.ts'
import { readExactly } from './exact-json.ts'
import type { Answer } from './wire.ts'

/** One promise of a running store. `run` rejects when it isn't kept. */
export interface ContractCase {
  /** The part of the contract that it is from. */
  readonly clause: string
  readonly name: string
  /** Leaves no plant behind that another case would notice: ids are its own, and lists are narrowed to its own tag. */
  run(client: Client): Promise<void>
}

export interface PlantSent {
  readonly id: bigint
  readonly name: string
  readonly tag?: string
}

let lastId = 1_000_000n

/** An id that no other case uses. */
export function ownId(): bigint {
  lastId += 1n
  return lastId
}

/** JSON text with ids as the integers that they are, which JSON.stringify refuses to write. */
export function toJson(value: object): string {
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members
    .map(
      ([name, member]) =>
        `${JSON.stringify(name)}:${typeof member === 'bigint' ? member : JSON.stringify(member)}`,
    )
    .join(',')}}`
}

/** What an answer holds, with integers as bigints. */
export function held(answer: Answer): unknown {
  return readExactly(`${answer.body}`)
}

export function assertSuccess(answer: Answer, value: unknown): void {
  assert.equal(answer.status, 200, `${answer.body}`)
  assert.deepEqual(held(answer), value)
}

/**
 * The shape is the recorder's to check, with every answer.
 *
 * @param error the published number; its status is the part before the last two digits
 * @param words that the message must have
 */
export function assertFailure(answer: Answer, error: number, ...words: readonly (string | RegExp)[]): void {
  const { error: given, message } = held(answer) as { error: bigint; message: string }
  assert.deepEqual([answer.status, given], [Math.floor(error / 100), BigInt(error)], message)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  for (const word of words)
    assert.match(message, typeof word === 'string' ? new RegExp(`\\b${word}\\b`) : word)
}

export async function create(client: Client, plant: PlantSent): Promise<void> {
  const { id: _, ...shown } = plant
  assertSuccess(await client.ask('POST', '/plants', { body: toJson(plant) }), shown)
}

/** Frees ids that only one plant in the world can have, such as 2^63-1. */
export async function free(client: Client, ids: readonly bigint[]): Promise<void> {
  for (const id of ids) {
    const { status } = await client.ask('DELETE', `/plants/${id}`)
    assert.ok(status === 204 || status === 404)
  }
}

export async function assertAbsent(client: Client, id: bigint): Promise<void> {
  assertFailure(await client.ask('GET', `/plants/${id}`), 40402)
}

/**
 * The bytes of a request for the plants, with a token and a body.
 *
 * @param fields header fields as they are to be sent; those for Host, the token and the media type are there already,
 *   and `content-length` too unless the body is in chunks
 */
export function plantRequest(
  client: Client,
  body: string | Uint8Array,
  fields: readonly string[] = [],
): Buffer {
  const isChunked = fields.some(field => /^transfer-encoding:/i.test(field))
  const lines = [
    `POST ${client.target('/plants')} HTTP/1.1`,
    'host: plants.example',
    `authorization: Bearer ${client.store.tokens.full}`,
    'content-type: application/json',
    ...(isChunked ? [] : [`content-length: ${Buffer.byteLength(body)}`]),
    ...fields,
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), Buffer.from(body)])
}

/** The bytes of a request without a body. */
export function bareRequest(method: string, target: string, fields: readonly string[]): string {
  return `${[`${method} ${target} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`
}
