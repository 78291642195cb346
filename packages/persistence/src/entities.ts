import { tokens } from './tokens/entity.ts'
import { announcedPlants as plants } from './webhooks/announced-plants.ts'
import { webhooks } from './webhooks/entity.ts'

/** All that a store has. The migrations of one version run in this order. */
export const entities = { plants, webhooks, tokens }
