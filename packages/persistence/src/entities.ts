import { plants } from './plants/entity.ts'
import { tokens } from './tokens/entity.ts'
import { webhooks } from './webhooks/entity.ts'

/** All that a store has. The migrations of one version run in this order. */
export const entities = { plants, webhooks, tokens }
