import assert from 'node:assert/strict'
import type { Client } from './client.ts'
import { type ContractCase, ownId, type PlantSent } from './contract-case.ts'
import { jsonOf, toJson } from './exact-json.ts'
import type { Answer } from './wire.ts'

export function assertSuccess(answer: Answer, value: unknown, status = 200): void {
  assert.equal(answer.status, status, `${answer.body}`)
  assert.deepEqual(jsonOf(answer), value)
}

/**
 * Checks that an answer is this failure. (The recorder checks the shape of every answer.)
 *
 * @param error the published number, which begins with the status
 * @param words what the message must contain, each as a whole word or a pattern
 */
export function assertFailure(
  answer: Answer,
  error: number,
  ...words: readonly (string | RegExp)[]
): void {
  const status = Math.floor(error / 100)
  const mismatch = `expected error ${error}, but the answer is ${describeAnswer(answer)}`
  assert.equal(answer.status, status, mismatch)

  const failure = jsonOf(answer) as { error: bigint; message: string }
  assert.equal(failure.error, BigInt(error), mismatch)
  assert.equal(answer.headers.get('content-type'), 'application/json', mismatch)

  for (const word of words) {
    const pattern = typeof word === 'string' ? new RegExp(`\\b${word}\\b`) : word
    assert.match(failure.message, pattern, mismatch)
  }
}

/** Returns the status and the start of the body, for a message that fits on a screen. */
function describeAnswer({ status, body }: Answer): string {
  const shownCharsMax = 300
  const text = `${body}`
  const isLong = text.length > shownCharsMax
  return `${status} ${isLong ? `${text.slice(0, shownCharsMax)}…` : text}`
}

/** @param body by default the plant itself */
export async function create(
  client: Client,
  plant: PlantSent,
  body: string | Uint8Array = toJson(plant),
) {
  const { id: _, ...shown } = plant
  assertSuccess(await client.post(body), shown)
}

/** Creates a plant with this body, and reads it. */
export async function assertTaken(
  client: Client,
  plant: PlantSent,
  body?: string | Uint8Array,
) {
  await create(client, plant, body)
  await assertKept(client, plant)
}

/** Frees ids that are unique, such as 2^63-1. */
export async function free(client: Client, ids: readonly bigint[]): Promise<void> {
  for (const id of ids) {
    const { status } = await client.ask('DELETE', `/plants/${id}`)
    assert.ok(status === 204 || status === 404, `DELETE of ${id}: ${status}`)
  }
}

export async function assertKept(client: Client, plant: PlantSent): Promise<void> {
  assertSuccess(await client.ask('GET', `/plants/${plant.id}`), plant)
}

/** Checks that each of these is there, unchanged. */
export async function assertAllKept(
  client: Client,
  plants: readonly PlantSent[],
): Promise<void> {
  await Promise.all(plants.map(plant => assertKept(client, plant)))
}

export async function assertAbsent(client: Client, id: bigint): Promise<void> {
  assertFailure(await client.ask('GET', `/plants/${id}`), 40402)
}

export function idsOf(page: unknown): readonly bigint[] {
  return (page as readonly PlantSent[]).map(({ id }) => id)
}

/** Reads page after page. */
export async function allPages(
  client: Client,
  path: string,
): Promise<(readonly PlantSent[])[]> {
  const pages: (readonly PlantSent[])[] = []
  let answer = await client.ask('GET', path)
  for (;;) {
    assert.equal(answer.status, 200, `${answer.body}`)
    pages.push(jsonOf(answer) as readonly PlantSent[])
    assert.ok(pages.length < 100, 'the pages have no end')
    if (!answer.headers.has('link')) {
      return pages
    }
    answer = await follow(client, answer)
  }
}

/** Requests the next page by its link, relative to the request. */
export async function follow(client: Client, { headers }: Answer): Promise<Answer> {
  const link = headers.get('link') ?? 'none'
  const [, target = ''] = /^<([^<>]*)>; rel="next"$/.exec(link) ?? []
  assert.ok(target.startsWith(`${client.target('/plants')}?`), link)
  return client.ask('GET', target.slice(client.target('').length))
}

/** A body, the number of its failure, and words of the message. */
type Refusal = readonly [body: string | Uint8Array, error: number, ...words: string[]]

/** Each is refused, and none creates a plant. */
export function refuses(
  refusals: (id: bigint) => readonly Refusal[],
): ContractCase['run'] {
  return async client => {
    const id = ownId()
    for (const [body, error, ...words] of refusals(id)) {
      const answer = await client.post(body)
      assertFailure(answer, error, ...words)
    }
    await assertAbsent(client, id)
  }
}
