import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { storeRoutes } from '@plant-store/http'
import type { UseCases } from '@plant-store/http/server'
import { fastify } from 'fastify'
import type { Operation } from '../src/openapi/operation.ts'
import type { Handlers } from '../src/pipeline.ts'
import { type GardenUseCases, gardens, type operations } from './gardens.ts'

// What the compiler refuses. `tsc` fails for a line below `@ts-expect-error` that compiles.

const { scope: _, ...unscoped } = gardens.operations.listGardens
export const scopes: Operation[] = [
  // @ts-expect-error an operation that does not say who may
  unscoped,
  // @ts-expect-error a scope that no token can have
  { ...unscoped, scope: 'gardens:read' },
  { ...unscoped, scope: null },
]

type Gardens = Handlers<typeof operations>
const garden = { id: 1n, name: 'g' }

export const answers: Gardens['readGarden'][] = [
  ({ answer }) => answer(200, garden),
  ({ answer }) => answer(304, null),
  // @ts-expect-error without a member
  ({ answer }) => answer(200, { id: 1n }),
  // @ts-expect-error with a misspelt one
  ({ answer }) => answer(200, { id: 1n, nam: 'g' }),
  // @ts-expect-error with one too many
  ({ answer }) => answer(200, { ...garden, tag: 'g' }),
  // @ts-expect-error with a member of another type
  ({ answer }) => answer(200, { ...garden, id: 1 }),
  // @ts-expect-error a list where there is one
  ({ answer }) => answer(200, [garden]),
  // @ts-expect-error a status that the operation does not have
  ({ answer }) => answer(204, null),
  // @ts-expect-error a failure, which is thrown
  ({ answer }) => answer(404, garden),
  // @ts-expect-error no answer at all
  () => {},
]

export const names: Partial<Gardens> = {
  // @ts-expect-error a misspelt query parameter
  listGardens: ({ query, answer }) => answer(200, [{ ...garden, name: query.nam ?? '' }]),
  // @ts-expect-error a misspelt part of the path
  readGarden: ({ params, answer }) => answer(200, { ...garden, name: params.idd }),
}
const { createGarden, ...others } = gardens.handlers({ gardens: new Map() })
export const lists: Gardens[] = [
  // @ts-expect-error an operation without a handler
  others,
  // @ts-expect-error a handler without an operation
  { createGarden, ...others, removeGarden: createGarden },
]

const plants = createPlantUseCases({ plants: createMemoryPlantRepository() })
export const useCases: UseCases[] = [
  { plants },
  // @ts-expect-error an entity of the list that is not passed
  {},
  // @ts-expect-error an entity that is missing from the list
  { plants, gardens: { gardens: new Map() } satisfies GardenUseCases },
]
const gate = () => ({ name: 'anybody' })
fastify().register(storeRoutes, { gate })
// @ts-expect-error use cases under another name
fastify().register(storeRoutes, { gate, store: plants })
