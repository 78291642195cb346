import type { Plant as DomainPlant } from '@plant-store/domain'
import { named, object, text } from './json-schema.ts'

/** Values on the wire. What is valid, the domain decides. */

const int64 = (description: string) => ({ type: 'integer', format: 'int64', description })
const int32 = (description: string) => ({ type: 'integer', format: 'int32', description })

const fields = {
  id: int64('Identification number of the plant'),
  name: text('The name of the plant'),
  tag: text('Tag that specifies the type of the plant'),
} satisfies Record<keyof DomainPlant, object>
const { id, ...withoutId } = fields

export const Plant = named('Plant', object(withoutId, 'name'))
export const NewPlant = named('NewPlant', { allOf: [Plant, object({ id }, 'id')] })
export const StoredPlant = named('StoredPlant', object(fields, 'id', 'name'))
export const PlantId = named('PlantId', id)
export const Status = named('Status', object({ status: { type: 'string' } }, 'status'))
export const FailureBody = named(
  'Error',
  object({ error: int32('Numeric error indicator'), message: text('Error text') }, 'error', 'message'),
)
