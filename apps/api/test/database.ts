import { join } from 'node:path'
import { hashToken, mintToken, type Scope, scopesByChoice } from '@plant-store/access'
import { temporaryFolder } from '@plant-store/harness'
import { createSchema } from '@plant-store/harness/postgres'
import type {} from '@plant-store/harness/postgres-setup'
import { openStorage } from '@plant-store/persistence'
import { inject } from 'vitest'

/**
 * A store of its own, with one token of each kind in it: on PostgreSQL where the tests
 * have a server of it, and otherwise a file.
 */
export async function prepareDatabase() {
  await using starting = new AsyncDisposableStack()
  const server = inject('postgresUrl') as string | undefined
  const url =
    server === undefined
      ? `file:${join(starting.use(temporaryFolder()).path, 'plants.db')}`
      : starting.use(await createSchema(server)).url
  await using storage = await openStorage({ url })
  const mint = async (name: string, scopes: readonly Scope[], more: object = {}) => {
    const token = mintToken()
    const entry = { name, scopes, createdAt: new Date(), ...more }
    await storage.tokens.insert(entry, hashToken(token))
    return token
  }
  const { write: all, read } = scopesByChoice
  const tokens = {
    full: await mint('full', all),
    readOnly: await mint('read only', read),
    writeOnly: await mint('write only', ['plants:write']),
    expired: await mint('expired', all, { expiresAt: new Date(0) }),
    metrics: await mint('metrics', ['metrics:read']),
  }
  const resources = starting.move()
  return { url, tokens, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}
