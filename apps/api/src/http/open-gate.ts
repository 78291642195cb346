import {
  type AccessToken,
  createGate,
  type Gate,
  hashToken,
  scopes,
  type TokenHash,
  type TokenRepository,
} from '@plant-store/access'
import { messageOf } from '@plant-store/engine'
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
  const createdAt = new Date()
  const configured = new Map<TokenHash, AccessToken>(
    accessTokens.map((token, index) => [
      hashToken(token),
      { name: `ACCESS_TOKENS[${index}]`, scopes, createdAt },
    ]),
  )
  const gate = createGate({
    find: async hash => configured.get(hash) ?? tokens.find(hash),
    async markUsed(hash, usedAt) {
      if (!configured.has(hash)) {
        await tokens.markUsed(hash, usedAt)
      }
    },
  })
  const { jwksUrl, ...settings } = jwt
  if (jwksUrl === undefined) {
    return gate
  }
  // Only a service with a provider loads jose and `fetch`.
  const { createJwtGate } = await import('@plant-store/jwt')
  return createJwtGate({
    ...settings,
    jwksUrl,
    otherwise: gate,
    signal,
    onFailureChange(error) {
      if (error === undefined) {
        logger.info({ jwksUrl }, "the identity provider's keys were fetched again")
        return
      }
      const reason = messageOf(error)
      logger.error({ jwksUrl, reason }, "the identity provider's keys cannot be used")
    },
  })
}
