import { join } from 'node:path'
import { hashToken, mintToken, type Scope, scopesByChoice } from '@plant-store/access'
import { temporaryFolder } from '@plant-store/harness'
import { createSchema } from '@plant-store/harness/postgres'
import type {} from '@plant-store/harness/postgres-setup'
import type { StoreTokens } from '@plant-store/http/testing'
import { openStorage } from '@plant-store/persistence'
import { inject } from 'vitest'

interface Expiry {
  readonly expiresAt?: Date
}

/**
 * A store of its own, with one token of each kind in it: on PostgreSQL where the tests
 * have a server of it, and otherwise a file.
 */
export async function prepareDatabase(): Promise<
  { url: string; tokens: StoreTokens } & AsyncDisposable
> {
  const server = inject('postgresUrl') as string | undefined
  const database = server === undefined ? createFile() : await createSchema(server)
  await using storage = await openStorage({ url: database.url })
  const mint = async (name: string, scopes: readonly Scope[], more: Expiry = {}) => {
    const token = mintToken()
    const entry = { name, scopes, createdAt: new Date(), ...more }
    await storage.tokens.insert(entry, hashToken(token))
    return token
  }
  const { write: all, read } = scopesByChoice
  const write = all.filter(scope => scope.endsWith(':write'))
  const tokens = {
    full: await mint('full', all),
    readOnly: await mint('read only', read),
    writeOnly: await mint('write only', write),
    expired: await mint('expired', all, { expiresAt: new Date(0) }),
    metrics: await mint('metrics', ['metrics:read']),
  }
  return {
    url: database.url,
    tokens,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

function createFile(): { readonly url: string } & AsyncDisposable {
  const folder = temporaryFolder()
  return {
    url: `file:${join(folder.path, 'plants.db')}`,
    [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
  }
}
