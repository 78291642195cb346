import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { storeRoutes } from '@plant-store/http'
import type { UseCases } from '@plant-store/http/server'
import { fastify } from 'fastify'
import type { Operation } from '../src/openapi/operation.ts'
import type { Handlers } from '../src/pipeline.ts'
import { type NoteUseCases, notes, type operations } from './notes.ts'

// What the compiler refuses. `tsc` fails for a line below `@ts-expect-error` that compiles.

const { scope: _, ...unscoped } = notes.operations.listNotes
export const scopes: Operation[] = [
  // @ts-expect-error an operation that does not say who may
  unscoped,
  // @ts-expect-error a scope that no token can have
  { ...unscoped, scope: 'notes:read' },
  { ...unscoped, scope: null },
]

type Notes = Handlers<typeof operations>
const note = { id: 1n, name: 'g' }

export const answers: Notes['readNote'][] = [
  ({ answer }) => answer(200, note),
  ({ answer }) => answer(304, null),
  // @ts-expect-error without a member
  ({ answer }) => answer(200, { id: 1n }),
  // @ts-expect-error with a misspelt one
  ({ answer }) => answer(200, { id: 1n, nam: 'g' }),
  // @ts-expect-error with one too many
  ({ answer }) => answer(200, { ...note, tag: 'g' }),
  // @ts-expect-error with a member of another type
  ({ answer }) => answer(200, { ...note, id: 1 }),
  // @ts-expect-error a list where there is one
  ({ answer }) => answer(200, [note]),
  // @ts-expect-error a status that the operation does not have
  ({ answer }) => answer(204, null),
  // @ts-expect-error a failure, which is thrown
  ({ answer }) => answer(404, note),
  // @ts-expect-error no answer at all
  () => {},
]

export const names: Partial<Notes> = {
  // @ts-expect-error a misspelt query parameter
  listNotes: ({ query, answer }) => answer(200, [{ ...note, name: query.nam ?? '' }]),
  // @ts-expect-error a misspelt part of the path
  readNote: ({ params, answer }) => answer(200, { ...note, name: params.idd }),
}
const { createNote, ...others } = notes.handlers({ notes: new Map() })
export const lists: Notes[] = [
  // @ts-expect-error an operation without a handler
  others,
  // @ts-expect-error a handler without an operation
  { createNote, ...others, removeNote: createNote },
]

const plants = createPlantUseCases({ plants: createMemoryPlantRepository() })
export const passed = ({ plants, ...others }: UseCases): UseCases[] => [
  { plants, ...others },
  // @ts-expect-error an entity of the list that is not passed
  { ...others },
  // @ts-expect-error an entity that is missing from the list
  { plants, ...others, notes: { notes: new Map() } satisfies NoteUseCases },
]
const gate = () => ({ name: 'anybody' })
fastify().register(storeRoutes, { gate })
// @ts-expect-error use cases under another name
fastify().register(storeRoutes, { gate, store: plants })
