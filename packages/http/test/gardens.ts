import { DomainError, type Int64, isInt64 } from '@plant-store/domain'
import { Type } from 'typebox'
import { aroundBody, aroundRequest, type Operations } from '../src/openapi/operation.ts'
import { about, int64, named } from '../src/openapi/schemas.ts'
import type { Entity, Handlers } from '../src/pipeline.ts'
import { readJsonBody } from '../src/request/body.ts'
import { readInteger } from '../src/request/query.ts'

/** A second entity, as somebody would add it. */

const Garden = named('Garden', Type.Object({ id: int64('The id'), name: Type.String() }), {
  id: 1n,
  name: 'g',
})
const params = Type.Object({ id: Garden.properties.id })

export const operations = {
  createGarden: {
    method: 'POST',
    url: '/gardens',
    scope: 'plants:write',
    summary: 'Add a garden',
    body: about('The garden', Garden),
    response: { 200: about('The garden', Garden) },
    failures: [...aroundRequest, ...aroundBody],
  },
  listGardens: {
    method: 'GET',
    url: '/gardens',
    scope: 'plants:read',
    summary: 'List gardens',
    querystring: Type.Object({ name: Type.Optional(Type.String({ description: 'Only with this name' })) }),
    response: { 200: about('Gardens', Type.Array(Garden)) },
    failures: aroundRequest,
  },
  readGarden: {
    method: 'GET',
    url: '/gardens/:id',
    scope: 'plants:read',
    summary: 'Read a garden',
    params,
    response: { 200: about('The garden', Garden), 304: about('The same', Type.Null()) },
    failures: [404, ...aroundRequest],
  },
} as const satisfies Operations

export interface GardenUseCases {
  readonly gardens: Map<bigint, { readonly id: bigint; readonly name: string }>
}

const handlers = ({ gardens }: GardenUseCases): Handlers<typeof operations> => ({
  createGarden({ request, answer }) {
    const garden = readJsonBody(request) as { id: Int64; name: string }
    if (!isInt64(garden.id)) throw failure('invalid-garden', 'id must be an integer')
    gardens.set(garden.id, garden)
    return answer(200, garden)
  },
  listGardens: ({ query, answer }) =>
    answer(
      200,
      [...gardens.values()].filter(({ name }) => query.name === undefined || query.name === name),
    ),
  async readGarden({ params, answer }) {
    const garden = gardens.get(readInteger(params.id) as bigint)
    if (garden === undefined) throw failure('garden-not-found', `there is no garden with id ${params.id}`)
    return answer(200, garden)
  },
})

/** The domain of this project has no such codes. */
const failure = (code: string, message: string) => new DomainError(code as 'invalid-plant', message)

export const gardens = {
  tag: { name: 'gardens', description: 'The gardens in the store' },
  operations,
  schemas: { Garden },
  failures: {
    'invalid-garden': [40012, 'The body is not a valid garden'],
    'garden-not-found': [40403, 'There is no garden with this id'],
  },
  handlers,
} satisfies Entity<typeof operations, GardenUseCases>
