import { AccessError, type Gate } from '@plant-store/access'
import { parsePlant } from '@plant-store/domain'
import { listSchema, readSchema } from '../src/plants/plant-schemas.ts'
import type { Routes } from '../src/typed-routes.ts'

// The compiler refuses these routes. `tsc` fails for a line below `@ts-expect-error` that
// compiles.

declare const routes: Routes
const plant = parsePlant({ id: 1n, name: 'g' })
const read = { config: { scope: 'plants:read' }, schema: readSchema } as const
const list = { config: { scope: 'plants:read' }, schema: listSchema } as const
const openRead = { config: { scope: null }, schema: readSchema }
const misspelt = { config: { scope: 'notes:read' }, schema: readSchema } as const
const undescribed = { config: { scope: null }, schema: {} }

export const scopes = [
  routes.get('/open', openRead, async () => plant),
  // @ts-expect-error a route that does not say who may
  routes.get('/undeclared', { schema: readSchema }, async () => plant),
  // @ts-expect-error a scope that no token can have
  routes.get('/misspelt', misspelt, async () => plant),
]

export const schemas = [
  // @ts-expect-error a route that is not described
  routes.get('/undescribed', undescribed, async () => plant),
]

export const answers = [
  routes.get('/plants/:id', read, async () => plant),
  routes.get('/plants/:id', read, async (_request, reply) => {
    reply.code(304)
    return null
  }),
  // @ts-expect-error with a misspelt member
  routes.get('/plants/:id', read, async () => ({ id: 1n, nam: 'g' })),
  // @ts-expect-error with a member of another type
  routes.get('/plants/:id', read, async () => ({ ...plant, id: 1 })),
  routes.get('/plants/:id', read, async (_request, reply) => {
    // @ts-expect-error a status that the route does not have
    reply.code(204)
    return null
  }),
  // @ts-expect-error no answer at all
  routes.get('/plants/:id', read, async () => {}),
]

export const names = [
  // @ts-expect-error a misspelt query parameter
  routes.get('/plants', list, async ({ query }) => [{ ...plant, name: query.tags ?? '' }]),
  // @ts-expect-error a misspelt part of the path
  routes.get('/plants/:id', read, async ({ params }) => ({ ...plant, name: params.idd })),
  // @ts-expect-error a number in a query: it is a text, which the domain judges
  routes.get('/plants', list, async ({ query }) => [{ ...plant, id: query.limit ?? 1n }]),
]

export const gates: readonly Gate[] = [
  () => ({ name: 'flora' }),
  // @ts-expect-error an error that is returned, not thrown
  () => new AccessError('invalid-token', 'the access token is unknown'),
]
