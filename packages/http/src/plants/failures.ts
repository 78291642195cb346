import type { PlantErrorCode } from '@plant-store/domain'
import type { FailureRow } from '../errors/error-numbers.ts'

export const failures = {
  'invalid-plant': [40002, 'The body is not a valid plant'],
  'invalid-plant-id': [40004, 'The path does not end in a plant id'],
  'invalid-plant-query': [40005, 'A query parameter is invalid'],
  'plant-not-found': [40402, 'There is no plant with this id'],
  'condition-failed': [41201, 'The plant does not meet If-Match or If-None-Match'],
} as const satisfies Record<PlantErrorCode, FailureRow>
