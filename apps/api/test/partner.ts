import { createServer, type RequestListener } from 'node:http'
import { listenLocally } from '@plant-store/harness'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** Starts a service that the server asks, such as an identity provider. */
export async function startPartner(answer: RequestListener) {
  const server = createServer(answer)
  return {
    url: `http://127.0.0.1:${await listenLocally(server)}/partner`,
    [Symbol.dispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const issuer = 'https://identity.example/'
const audience = 'https://plants.example'

/** Makes the key of an identity provider. */
export async function makeKey() {
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid: '1', alg: 'RS256' }
  const sign = (sub: string, permissions = ['plants:read', 'plants:write']) =>
    new SignJWT({ sub, permissions })
      .setProtectedHeader({ alg: 'RS256', kid: '1' })
      .setIssuer(issuer)
      .setAudience(audience)
      .setExpirationTime('1h')
      .sign(privateKey)
  return { jwk, sign }
}

export const settingsOf = (jwksUrl: string) => ({
  JWT_ISSUER: issuer,
  JWT_AUDIENCE: audience,
  JWT_JWKS_URL: jwksUrl,
})
