import type { Plant as DomainPlant } from '@plant-store/domain'
import { writeJsonRecord } from '@plant-store/json'
import { type TSchema, Type } from 'typebox'
import { faultsMax } from '../limits.ts'

/** The wire format. A title is a schema's name in the interface description. The domain decides what is valid. */

const int64 = (description: string) => Type.Unsafe<bigint>({ type: 'integer', format: 'int64', description })
const int32 = (description: string) => Type.Unsafe<number>({ type: 'integer', format: 'int32', description })

const fields = {
  id: int64('Identification number of the plant'),
  name: Type.String({ description: 'The name of the plant' }),
  tag: Type.Optional(Type.String({ description: 'Tag that specifies the type of the plant' })),
} satisfies Record<keyof DomainPlant, TSchema>
const { id, ...withoutId } = fields

const named = <Schema extends object>(title: string, schema: Schema) => ({ ...schema, title })

export const Plant = named('Plant', Type.Object(withoutId))
export const NewPlant = named('NewPlant', Type.Intersect([Plant, Type.Object({ id })]))
export const StoredPlant = named('StoredPlant', Type.Object(fields))
export const PlantId = named('PlantId', id)
export const Status = named('Status', Type.Object({ status: Type.String() }))
const failure = {
  error: int32('Numeric error indicator'),
  message: Type.String({ description: 'Error text' }),
}
export const FailureBody = named('Error', Type.Object(failure))
export const PlantLines = named('PlantLines', Type.String({ description: 'One NewPlant a line, as JSON' }))
const count = (description: string) => Type.Integer({ minimum: 0, description })
export const CreatedPlants = named(
  'CreatedPlants',
  Type.Object({
    created: count('Plants created'),
    existing: count('Plants that the store already had, exactly equal'),
    refused: count('Lines that are not a valid plant, or whose id another plant has'),
    faults: Type.Array(Type.Object({ line: count('Counted from 1'), ...failure }), {
      description: 'The faults of the first refused lines',
      maxItems: faultsMax,
    }),
  }),
)

const plant = { name: 'Monstera deliciosa', tag: 'climber' }
const newPlant = { id: 42n, ...plant }

/** Examples for the interface description, by the title of the schema. */
export const examples: Readonly<Record<string, unknown>> = {
  Plant: plant,
  NewPlant: newPlant,
  StoredPlant: newPlant,
  PlantId: newPlant.id,
  PlantLines: `${writeJsonRecord(newPlant)}\n${writeJsonRecord({ id: 43n, name: 'Ginkgo biloba' })}\n`,
  CreatedPlants: {
    created: 1,
    existing: 0,
    refused: 1,
    faults: [{ line: 2, error: 40003, message: 'id 43 is already taken' }],
  },
  Status: { status: 'ok' },
}
