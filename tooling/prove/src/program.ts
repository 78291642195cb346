import { type Client, createClient, createRecorder } from '@plant-store/contract'
import { type Server, type ServerOptions, startServer } from '@plant-store/harness'

/** The token that every server here is given. */
export const token = 'prove-token'

/** Starts our server for a load that tries one wrong token after the other. */
export function startProgram({ environment, ...options }: ServerOptions): Promise<Server> {
  return startServer({
    ...options,
    // As `pnpm start` has it.
    environment: {
      MALLOC_ARENA_MAX: '2',
      ACCESS_TOKENS: token,
      WRONG_TOKENS_LIMIT: '1000000',
      ...environment,
    },
    keepsOnlyWarnings: true,
  })
}

/** Returns what the server found to be wrong with itself, a line each. */
export function defects(server: Server): string[] {
  const found = server.warnings().filter(({ level }) => level >= 50)
  return found.map(line => `it logged ${JSON.stringify(line)}`)
}

/** A client that compares every answer with the description that the server serves. */
export async function connectClient({ url }: Server, description?: string): Promise<Client> {
  const text = description ?? (await (await fetch(`${url}/openapi.json`)).text())
  const tokens = {
    full: token,
    readOnly: token,
    writeOnly: token,
    expired: 'nobody-has-this',
    metrics: token,
  }
  return createClient({ url, tokens }, createRecorder(text))
}
