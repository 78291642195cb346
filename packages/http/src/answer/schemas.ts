import type { Plant as DomainPlant } from '@plant-store/domain'
import { type TSchema, Type } from 'typebox'

/** Values on the wire. A title is the name in the interface description. What is valid, the domain decides. */

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
export const FailureBody = named(
  'Error',
  Type.Object({
    error: int32('Numeric error indicator'),
    message: Type.String({ description: 'Error text' }),
  }),
)
