import {
  type AccessToken,
  createGate,
  hashToken,
  mintToken,
  scopes,
  type TokenRepository,
} from '@plant-store/access'
import { createPlantStore } from '@plant-store/domain'
import { createServer } from '@plant-store/http'
import { openStorage } from '@plant-store/persistence'
import type { Logger } from 'pino'
import type { Config } from './config.ts'

export interface RunningService extends AsyncDisposable {
  /** Where it listens. */
  readonly url: string
  /** The access token that was made because there was none; it can't be had again. */
  readonly firstToken: string | undefined
}

/** Puts the service together and starts it. Disposing of it goes the other way: it stops listening, drains, closes. */
export async function startService(config: Config, logger: Logger): Promise<RunningService> {
  await using starting = new AsyncDisposableStack()

  const storage = starting.use(
    await openStorage({
      url: config.databaseUrl,
      timeoutMs: config.databaseTimeoutMs,
      readConnectionsMax: config.databasePoolMax,
      queueRowsMax: config.queueRowsMax,
    }),
  )
  const store = createPlantStore({ plants: storage.plants })
  const gate = createGate({ tokens: withGivenTokens(config.accessTokens, storage.tokens) })
  const server = createServer({
    store,
    gate,
    check: storage.check,
    logger,
    limits: config.serverLimits,
    ...(config.baseUrl && { baseUrl: config.baseUrl }),
  })
  starting.defer(() => server.close())

  const firstToken = config.accessTokens.length > 0 ? undefined : await makeFirstToken(storage.tokens)
  const url = await server.listen({ host: config.host, port: config.port })

  const running = starting.move()
  return { url, firstToken, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

/** Tokens that the configuration gives stand beside the stored ones, for everything, for as long as the process runs. */
function withGivenTokens(given: readonly string[], tokens: TokenRepository): Pick<TokenRepository, 'find'> {
  const byHash = new Map(
    given.map((token, index): [string, AccessToken] => [
      hashToken(token),
      { name: `ACCESS_TOKENS[${index}]`, scopes, createdAt: new Date() },
    ]),
  )
  return { find: async hash => byHash.get(hash) ?? tokens.find(hash) }
}

async function makeFirstToken(tokens: TokenRepository): Promise<string | undefined> {
  if ((await tokens.list()).length > 0) return undefined
  const token = mintToken()
  const outcome = await tokens.insert({ name: 'first', scopes, createdAt: new Date() }, hashToken(token))
  return outcome === 'inserted' ? token : undefined
}
