import type { Section } from '../openapi/operation.ts'
import { failures, operations, webhooks } from './operations.ts'
import * as schemas from './schemas.ts'

/** The section of the description. */
export const plants = {
  tag: { name: 'plants', description: 'The plants in the store' },
  operations,
  schemas,
  failures,
  webhooks,
} satisfies Section
