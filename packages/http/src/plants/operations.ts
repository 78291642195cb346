import {
  type PlantErrorCode,
  pageLimitMax,
  searchedTextMax,
  totalMax,
} from '@plant-store/domain'
import { Type } from 'typebox'
import type { FailureRow } from '../errors/error-numbers.ts'
import {
  aroundBody,
  aroundRequest,
  header,
  type Operations,
  type Section,
} from '../openapi/operation.ts'
import { about } from '../openapi/schemas.ts'
import {
  conditionFields,
  entityTag,
  nextPageLink,
  pageParameters,
} from '../openapi/stored.ts'
import { announceParameter, plantAdded } from './announce.ts'
import * as wire from './schemas.ts'

const linesMediaType = 'application/x-ndjson'

const plantPath = Type.Object({ id: about('The id of the plant', wire.PlantId) })

export const operations = {
  createPlant: {
    method: 'POST',
    url: '/plants',
    scope: 'plants:write',
    summary: 'Add a plant',
    description: 'Creates a new plant in the store',
    body: about('Plant to add to the store', wire.NewPlant),
    response: { 200: about('plant response', wire.PlantWithoutId) },
    failureStatuses: [...aroundRequest, ...aroundBody],
    failureDescriptions: { 400: 'unexpected error' },
  },
  listPlants: {
    method: 'GET',
    url: '/plants',
    scope: 'plants:read',
    summary: 'List plants',
    description:
      'Returns a page of plants in ascending numeric order of id. A page of long texts may end before its limit, and one of a search may be empty. It is the last page only if it has no Link.',
    querystring: Type.Object({
      ...pageParameters(wire.PlantId),
      tag: Type.Optional(
        Type.String({ description: 'Only plants with exactly this tag' }),
      ),
      name_contains: Type.Optional(
        Type.String({
          description:
            'Only plants whose name contains this text, with A to Z as a to z and all else exactly. Looks at a bounded number of plants a request',
          minLength: 1,
          maxLength: searchedTextMax,
        }),
      ),
      count: Type.Optional(
        Type.Boolean({
          description: 'Whether to count the plants of all pages. Not with name_contains',
          default: false,
        }),
      ),
    }),
    response: {
      200: {
        ...about(
          'A page of plants',
          Type.Array(wire.StoredPlant, { maxItems: pageLimitMax }),
        ),
        headers: {
          ...nextPageLink,
          ...header(
            'Total-Count',
            `With count=true, the number of plants on all pages, exact up to ${totalMax}, and otherwise ${totalMax}+`,
          ),
        },
      },
    },
    failureStatuses: [...aroundRequest],
  },
  readPlant: {
    method: 'GET',
    url: '/plants/:id',
    scope: 'plants:read',
    summary: 'Read a plant',
    params: plantPath,
    headers: conditionFields,
    response: {
      200: { ...about('The plant', wire.StoredPlant), headers: entityTag },
      304: {
        ...about('The plant still has an entity tag of If-None-Match', Type.Null()),
        headers: entityTag,
      },
    },
    failureStatuses: [404, 412, ...aroundRequest],
  },
  replacePlant: {
    method: 'PUT',
    url: '/plants/:id',
    scope: 'plants:write',
    summary: 'Create or replace a plant',
    description: 'Is idempotent. An `id` in the body must equal the id in the path.',
    params: plantPath,
    headers: conditionFields,
    body: about('The new plant', wire.PlantWithoutId),
    response: {
      200: { ...about('The stored plant', wire.PlantWithoutId), headers: entityTag },
    },
    failureStatuses: [412, ...aroundRequest, ...aroundBody],
  },
  removePlant: {
    method: 'DELETE',
    url: '/plants/:id',
    scope: 'plants:write',
    summary: 'Remove a plant',
    params: plantPath,
    headers: conditionFields,
    response: { 204: about('The plant is removed', Type.Null()) },
    failureStatuses: [404, 412, ...aroundRequest, ...aroundBody],
  },
  createPlants: {
    method: 'POST',
    url: '/plants/batch',
    scope: 'plants:write',
    summary: 'Add many plants',
    description:
      'Creates the plant of each line, or lists why not. Counted plants are on disk. Sending the same lines again changes nothing, also after a request that failed as a whole.',
    querystring: Type.Object(announceParameter),
    body: {
      description: 'One NewPlant a line, any number of lines. Empty lines are ignored',
      content: { [linesMediaType]: { schema: wire.PlantLines } },
    },
    response: { 200: about('The outcome of the lines', wire.CreatedPlants) },
    failureStatuses: [...aroundRequest, ...aroundBody],
  },
} as const satisfies Operations

export const failures = {
  'invalid-plant': [40002, 'The body is not a valid plant'],
  'plant-not-found': [40402, 'There is no plant with this id'],
} as const satisfies Record<PlantErrorCode, FailureRow>

/** The section of the description. */
export const plants = {
  tag: { name: 'plants', description: 'The plants in the store' },
  operations,
  schemas: wire,
  failures,
  webhooks: plantAdded,
} satisfies Section
