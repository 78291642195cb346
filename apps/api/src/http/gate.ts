import {
  type AccessToken,
  createGate,
  type Gate,
  type GateOptions,
  hashToken,
  scopes,
  type TokenRepository,
} from '@plant-store/access'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'

/**
 * Returns the gate for stored tokens, those of the configuration, and those of an identity provider.
 *
 * @param signal ends requests to the provider
 */
export async function openGate(
  { accessTokens, jwt }: Config,
  tokens: TokenRepository,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<Gate> {
  const gate = createGate({ tokens: withGivenTokens(accessTokens, tokens) })
  if (jwt === undefined) return gate
  // Otherwise jose and `fetch` are not loaded.
  const { createJwtGate } = await import('@plant-store/jwt')
  const { clockSkewMs, ...settings } = jwt
  const { jwksUrl } = jwt
  return createJwtGate({
    ...settings,
    limits: { clockSkewMs },
    otherwise: gate,
    signal,
    onStateChange(state) {
      if (state.ready) logger.info({ jwksUrl }, "the identity provider's keys can be fetched again")
      else logger.error({ jwksUrl, reason: state.reason }, "the identity provider's keys cannot be fetched")
    },
  })
}

/** Returns the stored tokens and those of the configuration, which have every scope. */
function withGivenTokens(given: readonly string[], tokens: TokenRepository): GateOptions['tokens'] {
  const byHash = new Map(
    given.map((token, index): [string, AccessToken] => [
      hashToken(token),
      { name: `ACCESS_TOKENS[${index}]`, scopes, createdAt: new Date() },
    ]),
  )
  return {
    find: async hash => byHash.get(hash) ?? tokens.find(hash),
    markUsed: async (hash, usedAt) => {
      if (!byHash.has(hash)) await tokens.markUsed(hash, usedAt)
    },
  }
}
