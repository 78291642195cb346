import {
  type AccessToken,
  createGate,
  type Gate,
  hashToken,
  scopes,
  type TokenRepository,
} from '@plant-store/access'
import { explain } from '@plant-store/engine'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'

/**
 * Returns the gate for stored tokens, those of the configuration, which have every scope,
 * and those of an identity provider.
 *
 * @param signal ends requests to the provider
 */
export async function openGate(
  { accessTokens, jwt }: Config,
  tokens: TokenRepository,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<Gate> {
  const given = new Map(
    accessTokens.map((token, index): [string, AccessToken] => [
      hashToken(token),
      { name: `ACCESS_TOKENS[${index}]`, scopes, createdAt: new Date() },
    ]),
  )
  const gate = createGate({
    tokens: {
      find: async hash => given.get(hash) ?? tokens.find(hash),
      markUsed: async (hash, usedAt) => {
        if (!given.has(hash)) {
          await tokens.markUsed(hash, usedAt)
        }
      },
    },
  })
  const { jwksUrl, ...settings } = jwt
  if (jwksUrl === undefined) {
    return gate
  }
  // Otherwise jose and `fetch` are not loaded.
  const { createJwtGate } = await import('@plant-store/jwt')
  return createJwtGate({
    ...settings,
    jwksUrl,
    otherwise: gate,
    signal,
    onFailureChange(error) {
      if (error === undefined) {
        logger.info({ jwksUrl }, "the identity provider's keys can be fetched again")
        return
      }
      const reason = explain(error)
      logger.error({ jwksUrl, reason }, "the identity provider's keys cannot be fetched")
    },
  })
}
