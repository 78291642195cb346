import { hashToken, mintToken } from '@plant-store/access'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import { alone, ask, token as given, start } from './ask.ts'

const limit = 10

test('all threads count wrong tokens together, and a good one passes each, also at its first use', async () => {
  const folder = temporaryFolder()
  const stored = await storeTokens(folder, 20)
  const environment = { DATABASE_URL: 'file:plants.db', HTTP_THREADS: '2', WRONG_TOKENS_LIMIT: `${limit}` }
  await using program = await start(environment, { folder })
  const statusOf = async (token: string) =>
    (await ask(program, 'GET /plants', { token, headers: alone })).status
  const wrong = await Promise.all(Array.from({ length: 6 * limit }, (_, n) => statusOf(`guess-${n}`)))
  expect(wrong.filter(status => status === 401)).toHaveLength(limit)
  expect(wrong.filter(status => status === 429)).toHaveLength(5 * limit)
  const good = await Promise.all([...stored, given, given, given].map(statusOf))
  expect(new Set(good)).toEqual(new Set([200]))
  expect(await program.end()).toBe(0)
})

async function storeTokens(folder: string, count: number): Promise<string[]> {
  await using storage = await openStorage({ url: `file:${folder}/plants.db` })
  const tokens = Array.from({ length: count }, mintToken)
  for (const [index, token] of tokens.entries()) {
    const kept = { name: `reader ${index}`, scopes: ['plants:read'], createdAt: new Date() } as const
    await storage.tokens.insert(kept, hashToken(token))
  }
  return tokens
}
