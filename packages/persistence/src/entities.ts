import { plants } from './plants/plants.ts'
import { tokens } from './tokens/tokens.ts'
import { announcing } from './webhooks/announce.ts'
import { webhooks } from './webhooks/webhooks.ts'

/** All that a store has. What is not here exists nowhere in it. */
export const entities = { plants: plants(announcing), tokens, webhooks }
