import { Type } from 'typebox'

/** What travels, for the interface description and for writing answers. What is valid is the domain's to judge. */

const texts = {
  name: Type.String({ description: 'The name of the plant' }),
  tag: Type.Optional(Type.String({ description: 'Tag that specifies the type of the plant' })),
}
const int64 = (description: string) => Type.Unsafe<bigint>({ type: 'integer', format: 'int64', description })
const int32 = (description: string) => Type.Unsafe<number>({ type: 'integer', format: 'int32', description })

const id = int64('Identification number of the plant')

export const schemas = {
  Plant: Type.Object(texts),
  NewPlant: Type.Intersect([Type.Ref('#/components/schemas/Plant'), Type.Object({ id })]),
  Error: Type.Object({
    error: int32('Numeric error indicator'),
    message: Type.String({ description: 'Error text' }),
  }),
  PlantId: id,
  StoredPlant: Type.Object({ id, ...texts }),
  Status: Type.Object({ status: Type.String() }),
}
