import assert from 'node:assert/strict'
import type { Client } from './client.ts'
import { readExactly } from './exact-json.ts'
import type { Answer } from './wire.ts'

/** One promise of a running store. */
export interface ContractCase {
  /** The part of the contract that it is from. */
  readonly clause: string
  readonly name: string
  /**
   * Rejects when the promise isn't kept. Leaves no plant behind that another case would notice: ids are its own, and
   * lists are narrowed to its own tag.
   */
  run(client: Client): Promise<void>
}

/** The cases of one clause, by name. */
export function casesOf(
  clause: string,
  runs: Readonly<Record<string, ContractCase['run']>>,
): readonly ContractCase[] {
  return Object.entries(runs).map(([name, run]) => ({ clause, name, run }))
}

/** A case of one clause for each of the subjects. */
export function casesForEach<Subject>(
  clause: string,
  subjects: readonly Subject[],
  name: (subject: Subject) => string,
  run: (client: Client, subject: Subject) => Promise<void>,
): readonly ContractCase[] {
  return subjects.map(subject => ({ clause, name: name(subject), run: client => run(client, subject) }))
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

// TypeScript does not know it yet.
const { rawJSON } = JSON as JSON & { rawJSON(text: string): unknown }

/** JSON text with ids as the integers that they are, which JSON.stringify refuses to write. */
export function toJson(value: object): string {
  return JSON.stringify(value, (_name, member) =>
    typeof member === 'bigint' ? rawJSON(`${member}`) : member,
  )
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
  assertSuccess(await client.post(toJson(plant)), shown)
}

/** Frees ids that only one plant in the world can have, such as 2^63-1. */
export async function free(client: Client, ids: readonly bigint[]): Promise<void> {
  for (const id of ids) {
    const { status } = await client.ask('DELETE', `/plants/${id}`)
    assert.ok(status === 204 || status === 404)
  }
}

export async function assertKept(client: Client, plant: PlantSent): Promise<void> {
  assertSuccess(await client.ask('GET', `/plants/${plant.id}`), plant)
}

export async function assertAbsent(client: Client, id: bigint): Promise<void> {
  assertFailure(await client.ask('GET', `/plants/${id}`), 40402)
}

/** The words of a text, where a list of them would take a line each. */
export function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}

/** What is posted, the number of its failure, and words of the message. */
type Refusal = readonly [body: string | Uint8Array, error: number, ...words: string[]]

/** Each is refused, and none leaves a plant with the id. */
export function refuses(refusals: (id: bigint) => readonly Refusal[]): ContractCase['run'] {
  return async client => {
    const id = ownId()
    for (const [body, error, ...words] of refusals(id))
      assertFailure(await client.post(body), error, ...words)
    await assertAbsent(client, id)
  }
}
