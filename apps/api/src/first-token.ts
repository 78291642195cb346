import { hashToken, mintToken, scopes, type TokenRepository } from '@plant-store/access'

/** Returns a new token with every scope for a new store. Stores only its hash. */
export async function makeFirstToken(tokens: TokenRepository): Promise<string> {
  const token = mintToken()
  await tokens.insert({ name: 'first', scopes, createdAt: new Date() }, hashToken(token))
  return token
}

/** Writes to the terminal, as others may read the log. */
export function showFirstToken(token: string, url: string): void {
  process.stderr.write(`
This is the first access token. It is shown only once, as the store keeps only its hash:

  ${token}

Add a plant with it:

  curl ${url}/plants -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"id": 1, "name": "Monstera", "tag": "climber"}'

`)
}
