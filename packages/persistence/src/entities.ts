import { plants } from './plants/plants.ts'
import { tokens } from './tokens/tokens.ts'
import { webhooks } from './webhooks/webhooks.ts'

/** All that a store has. The migrations of one version run in this order. */
export const entities = { plants, webhooks, tokens }
