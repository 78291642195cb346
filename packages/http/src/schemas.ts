import fastJsonStringify from 'fast-json-stringify'
import { Type } from 'typebox'

/** What travels, for the interface description and for writing answers. What is valid is the domain's to judge. */

const name = Type.String({ description: 'The name of the plant' })
const tag = Type.Optional(Type.String({ description: 'Tag that specifies the type of the plant' }))
const int64 = (description: string) => Type.Unsafe<bigint>({ type: 'integer', format: 'int64', description })
const int32 = (description: string) => Type.Unsafe<number>({ type: 'integer', format: 'int32', description })

const id = int64('Identification number of the plant')

export const schemas = {
  Plant: Type.Object({ name, tag }),
  NewPlant: Type.Intersect([Type.Ref('#/components/schemas/Plant'), Type.Object({ id })]),
  Error: Type.Object({
    error: int32('Numeric error indicator'),
    message: Type.String({ description: 'Error text' }),
  }),
  PlantId: id,
  StoredPlant: Type.Object({ id, name, tag }),
  Status: Type.Object({ status: Type.String() }),
}

export const writePlant = fastJsonStringify(schemas.Plant)
export const writeStoredPlant = fastJsonStringify(schemas.StoredPlant)
export const writeStoredPlants = fastJsonStringify(Type.Array(schemas.StoredPlant))
export const writeError = fastJsonStringify(schemas.Error)
export const writeStatus = fastJsonStringify(schemas.Status)
