import {
  type Plant,
  type PlantListParameter,
  pageLimitMax,
  searchedTextMax,
  totalMax,
} from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import { type TSchema, Type } from 'typebox'
import { faultsMax } from '../limits.ts'
import { linesMediaType } from '../request/bodies.ts'
import {
  about,
  conditionFields,
  entityTag,
  failureMembers,
  header,
  inBytes,
  inQuery,
  int64,
  nextPageLink,
  pageParameters,
} from '../shared-schemas.ts'
import type { RouteSchema } from '../typed-routes.ts'

const members = {
  id: int64('Identification number of the plant'),
  name: Type.String({ description: 'The name of the plant' }),
  tag: Type.Optional(
    Type.String({ description: 'Tag that specifies the type of the plant' }),
  ),
} satisfies Record<keyof Plant, TSchema>
const { id, ...membersWithoutId } = members

const examplePlant = { name: 'Monstera deliciosa', tag: 'climber' }
const exampleNewPlant = { id: 42, ...examplePlant }

/** The published name is `Plant`. An answer written by this schema has no id. */
const PlantWithoutId = Type.Object(membersWithoutId, {
  $id: 'Plant',
  examples: [examplePlant],
})

const NewPlant = Type.Intersect([PlantWithoutId, Type.Object({ id })], {
  $id: 'NewPlant',
  examples: [exampleNewPlant],
})

export const StoredPlant = Type.Object(members, {
  $id: 'StoredPlant',
  examples: [exampleNewPlant],
})

const Page = Type.Array(StoredPlant, {
  maxItems: pageLimitMax,
  examples: [[exampleNewPlant]],
})

const PlantId = { ...id, $id: 'PlantId', examples: [exampleNewPlant.id] }

const exampleLines = [exampleNewPlant, { id: 43, name: 'Ginkgo biloba' }]
const PlantLines = Type.String({
  $id: 'PlantLines',
  description: 'One NewPlant a line, as JSON',
  examples: [exampleLines.map(plant => `${writeJsonRecord(plant)}\n`).join('')],
})

const count = (description: string) => Type.Integer({ minimum: 0, description })

const CreatedPlants = Type.Object(
  {
    created: count('Plants created'),
    existing: count('Plants that the store already had, exactly equal'),
    refused: count('Lines that are not a valid plant, or whose id another plant has'),
    faults: Type.Array(
      Type.Object({ line: count('Counted from 1'), ...failureMembers }),
      { description: 'The faults of the first refused lines', maxItems: faultsMax },
    ),
  },
  {
    $id: 'CreatedPlants',
    examples: [
      {
        created: 1,
        existing: 0,
        refused: 1,
        faults: [{ line: 2, error: 40003, message: 'id 43 is already taken' }],
      },
    ],
  },
)

/** The schemas that the description has under their own names. */
export const plantSchemas = [
  PlantWithoutId,
  NewPlant,
  StoredPlant,
  PlantId,
  PlantLines,
  CreatedPlants,
]

const tags = ['plants']
const path = Type.Object({
  id: Type.Unsafe<string>(about('The id of the plant', PlantId)),
})

/** Its descriptions are those of the specification, word for word. */
export const createSchema = {
  operationId: 'createPlant',
  tags,
  summary: 'Add a plant',
  description: 'Creates a new plant in the store',
  body: inBytes('Plant to add to the store', NewPlant),
  response: { 200: about('plant response', PlantWithoutId) },
  failureDescriptions: { 400: 'unexpected error' },
} satisfies RouteSchema

export const listSchema = {
  operationId: 'listPlants',
  tags,
  summary: 'List plants',
  description:
    'Returns a page of plants in ascending numeric order of id. A page of long texts may end before its limit, and one of a search may be empty. It is the last page only if it has no Link.',
  querystring: Type.Object({
    ...pageParameters(PlantId),
    tag: inQuery(Type.String({ description: 'Only plants with exactly this tag' })),
    name_contains: inQuery(
      Type.String({
        description:
          'Only plants whose name contains this text, with A to Z as a to z and all else exactly. Looks at a bounded number of plants a request',
        minLength: 1,
        maxLength: searchedTextMax,
      }),
    ),
    count: inQuery(
      Type.Boolean({
        description: 'Whether to count the plants of all pages. Not with name_contains',
        default: false,
      }),
    ),
  } satisfies Record<PlantListParameter, TSchema>),
  response: {
    200: about('A page of plants', Page, {
      ...nextPageLink,
      ...header(
        'Total-Count',
        `With count=true, the number of plants on all pages, exact up to ${totalMax}, and otherwise ${totalMax}+`,
      ),
    }),
  },
} satisfies RouteSchema

export const readSchema = {
  operationId: 'readPlant',
  tags,
  summary: 'Read a plant',
  params: path,
  headers: conditionFields,
  response: {
    200: about('The plant', StoredPlant, entityTag),
    304: about(
      'The plant still has an entity tag of If-None-Match',
      Type.Null(),
      entityTag,
    ),
  },
  failureStatuses: [404, 412],
} satisfies RouteSchema

export const replaceSchema = {
  operationId: 'replacePlant',
  tags,
  summary: 'Create or replace a plant',
  description: 'Is idempotent. An `id` in the body must equal the id in the path.',
  params: path,
  headers: conditionFields,
  body: inBytes('The new plant', PlantWithoutId),
  response: {
    200: about('The plant, which replaced another', PlantWithoutId, entityTag),
    201: about('The plant, which is new', PlantWithoutId, entityTag),
  },
  failureStatuses: [412],
} satisfies RouteSchema

export const removeSchema = {
  operationId: 'removePlant',
  tags,
  summary: 'Remove a plant',
  params: path,
  headers: conditionFields,
  response: { 204: about('The plant is removed', Type.Null()) },
  failureStatuses: [404, 412],
} satisfies RouteSchema

export const createManySchema = {
  operationId: 'createPlants',
  tags,
  summary: 'Add many plants',
  description:
    'Creates the plant of each line, or lists why not. Counted plants are on disk. Sending the same lines again changes nothing, also after a request that failed as a whole.',
  querystring: Type.Object({
    announce: inQuery(
      Type.Boolean({
        description: 'Whether the plants are announced to webhooks',
        default: true,
      }),
    ),
  }),
  body: {
    description: 'One NewPlant a line, any number of lines. Empty lines are ignored',
    content: { [linesMediaType]: { schema: PlantLines } },
  },
  response: { 200: about('The outcome of the lines', CreatedPlants) },
} satisfies RouteSchema

const webhookFields = Object.entries({
  'webhook-id':
    'added_, changed_ or removed_, and the version. The same at every attempt (Standard Webhooks)',
  'webhook-timestamp': 'When the attempt was made, in seconds since 1970',
  'webhook-signature':
    'v1, and the HMAC-SHA256 of id, timestamp and body; one for each secret',
  'webhook-event': 'plant.added, plant.changed or plant.removed',
}).map(([name, description]) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
}))

/** Describes the request that a webhook gets with a plant, and the answers to it. */
const announcement = (plant: string) => ({
  tags,
  security: [],
  parameters: webhookFields,
  requestBody: {
    description: plant,
    required: true,
    content: { 'application/json': { schema: NewPlant } },
  },
  responses: {
    200: {
      description:
        'Return a 200 status to indicate that the data was received successfully',
    },
    410: {
      description:
        'Removes the webhook. After any other status but 2xx, it is tried again',
    },
  },
})

/** The first one is that of the specification. */
export const plantWebhooks = {
  '/plant/webhook': {
    post: {
      operationId: 'plantAdded',
      summary: 'A plant was added',
      description: 'Information about a new plant added to the store',
      ...announcement('Plant added to the store'),
    },
  },
  'plant.changed': {
    post: {
      operationId: 'plantChanged',
      summary: 'A plant was changed',
      description: 'Only for webhooks that want it',
      ...announcement('The plant after the change'),
    },
  },
  'plant.removed': {
    post: {
      operationId: 'plantRemoved',
      summary: 'A plant was removed',
      description: 'Only for webhooks that want it',
      ...announcement('The plant before its removal'),
    },
  },
}
