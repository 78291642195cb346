import type { Client } from './client.ts'
import { toJson } from './exact-json.ts'

/** One promise of a running store. */
export interface ContractCase {
  /** Its part of the contract. */
  readonly clause: string
  readonly name: string
  /**
   * Rejects if the promise is broken. Leaves no plant that another case would notice: ids
   * are unique, and lists are filtered by its own tag.
   */
  run(client: Client): Promise<void>
}

type Run = ContractCase['run']

/** Returns the cases of one clause, by name. */
export function casesOf(
  clause: string,
  cases: Readonly<Record<string, Run>>,
): readonly ContractCase[] {
  return Object.entries(cases).map(([name, run]) => ({ clause, name, run }))
}

/** Returns a case of one clause for each subject. */
export function casesForEach<Subject>(
  clause: string,
  subjects: readonly Subject[],
  name: (subject: Subject) => string,
  run: (client: Client, subject: Subject) => Promise<void>,
): readonly ContractCase[] {
  return subjects.map(subject => ({
    clause,
    name: name(subject),
    run: client => run(client, subject),
  }))
}

/** The methods of each path. HEAD goes with GET. */
export type Paths = Readonly<Record<string, readonly string[]>>

/** Every path of plants. */
export const plantPaths: Paths = {
  '/plants': ['GET', 'POST'],
  '/plants/1': ['DELETE', 'GET', 'PUT'],
  '/plants/batch': ['POST'],
}

export interface PlantSent {
  readonly id: bigint
  readonly name: string
  readonly tag?: string
}

let lastId = 1_000_000n

/** Returns an id that no other case uses. */
export function ownId(): bigint {
  lastId += 1n
  return lastId
}

/** Returns a new plant whose JSON is as long as a body may be. */
export function longestPlant({ store }: Client): PlantSent {
  const plant = { id: ownId(), name: 'long', tag: '' }
  return { ...plant, tag: 'x'.repeat(store.bodyBytesMax - toJson(plant).length) }
}

/** Returns the words of a text, to save a line each. */
export const words = (text: string): readonly string[] => text.trim().split(/\s+/)
