import type { PlantUseCases } from '@plant-store/domain'
import type { Entity } from '../pipeline.ts'
import { handlers } from './handlers.ts'
import { failures, operations, webhooks } from './operations.ts'
import * as schemas from './schemas.ts'

export const plants = {
  tag: { name: 'plants', description: 'The plants in the store' },
  operations,
  schemas,
  failures,
  webhooks,
  handlers,
} satisfies Entity<typeof operations, PlantUseCases>
