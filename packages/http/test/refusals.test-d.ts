import { parsePlant } from '@plant-store/domain'
import { memoryUseCases } from '@plant-store/domain/testing'
import type { UseCases } from '@plant-store/http/server'
import type { Operation } from '../src/openapi/operation.ts'
import type { Handlers } from '../src/pipeline.ts'
import { operations } from '../src/plants/operations.ts'

// What the compiler refuses. `tsc` fails for a line below `@ts-expect-error` that compiles.

const { scope: _, ...unscoped } = operations.listPlants
export const scopes: Operation[] = [
  // @ts-expect-error an operation that does not say who may
  unscoped,
  // @ts-expect-error a scope that no token can have
  { ...unscoped, scope: 'notes:read' },
  { ...unscoped, scope: null },
]

type Plants = Handlers<typeof operations>
const plant = parsePlant({ id: 1n, name: 'g' })

export const answers: Plants['readPlant'][] = [
  async ({ answer }) => answer(200, plant),
  async ({ answer }) => answer(304, null),
  // @ts-expect-error with a misspelt one
  async ({ answer }) => answer(200, { id: 1n, nam: 'g' }),
  // @ts-expect-error with one too many
  async ({ answer }) => answer(200, { ...plant, colour: 'g' }),
  // @ts-expect-error with a member of another type
  async ({ answer }) => answer(200, { ...plant, id: 1 }),
  // @ts-expect-error a status that the operation does not have
  async ({ answer }) => answer(204, null),
  // @ts-expect-error no answer at all
  async () => {},
]

export const names: Partial<Plants> = {
  // @ts-expect-error a misspelt query parameter
  listPlants: async ({ query, answer }) => answer(200, [{ ...plant, name: query.tags ?? '' }]),
  // @ts-expect-error a misspelt part of the path
  readPlant: async ({ params, answer }) => answer(200, { ...plant, name: params.idd }),
}

export const lists = ({ createPlant, ...others }: Plants): Plants[] => [
  // @ts-expect-error an operation without a handler
  others,
  // @ts-expect-error a handler without an operation
  { createPlant, ...others, waterPlant: createPlant },
]

const useCases = memoryUseCases()
export const passed: UseCases[] = [
  useCases,
  // @ts-expect-error an entity that is not passed
  {},
  // @ts-expect-error an entity that is missing from the list
  { ...useCases, notes: useCases.plants },
]
