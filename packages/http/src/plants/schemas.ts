import type { Plant } from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import { type TSchema, Type } from 'typebox'
import { faultsMax } from '../limits.ts'
import { failureMembers, int64, named } from '../openapi/schemas.ts'

/** The wire format. The domain decides what is valid. */

const fields = {
  id: int64('Identification number of the plant'),
  name: Type.String({ description: 'The name of the plant' }),
  tag: Type.Optional(
    Type.String({ description: 'Tag that specifies the type of the plant' }),
  ),
} satisfies Record<keyof Plant, TSchema>
const { id, ...withoutId } = fields

const plant = { name: 'Monstera deliciosa', tag: 'climber' }
const newPlant = { id: 42n, ...plant }

/** The published name is `Plant`. An answer written by this schema has no id. */
export const PlantWithoutId = named('Plant', Type.Object(withoutId), plant)
export const NewPlant = named(
  'NewPlant',
  Type.Intersect([PlantWithoutId, Type.Object({ id })]),
  newPlant,
)
export const StoredPlant = named('StoredPlant', Type.Object(fields), newPlant)
export const PlantId = named('PlantId', id, newPlant.id)
export const PlantLines = named(
  'PlantLines',
  Type.String({ description: 'One NewPlant a line, as JSON' }),
  `${writeJsonRecord(newPlant)}\n${writeJsonRecord({ id: 43n, name: 'Ginkgo biloba' })}\n`,
)
const count = (description: string) => Type.Integer({ minimum: 0, description })
export const CreatedPlants = named(
  'CreatedPlants',
  Type.Object({
    created: count('Plants created'),
    existing: count('Plants that the store already had, exactly equal'),
    refused: count('Lines that are not a valid plant, or whose id another plant has'),
    faults: Type.Array(
      Type.Object({ line: count('Counted from 1'), ...failureMembers }),
      {
        description: 'The faults of the first refused lines',
        maxItems: faultsMax,
      },
    ),
  }),
  {
    created: 1,
    existing: 0,
    refused: 1,
    faults: [{ line: 2, error: 40003, message: 'id 43 is already taken' }],
  },
)
