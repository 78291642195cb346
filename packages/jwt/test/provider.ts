import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

export const audience = 'https://plants.example'

/** A key of the provider, and its private half. */
export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: object
}

export async function makeKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg)
  const publicJwk = await exportJWK(publicKey)
  return { kid, alg, privateKey, jwk: { ...publicJwk, kid, alg, use: 'sig' } }
}

/** Returns the time after this delay as a claim has it: in seconds since 1970. */
export function timeAfter(ms: number): number {
  return Math.floor((Date.now() + ms) / 1000)
}

/** Signs a token that lacks nothing. A claim or field that is `undefined` is left out. */
export function sign(
  { kid, alg, privateKey }: SigningKey,
  claims: object = {},
  header: object = {},
): Promise<string> {
  const payload = {
    iss: provider.issuer,
    aud: audience,
    sub: 'flora',
    scope: 'openid plants:read plants:write',
    exp: timeAfter(60_000),
    ...claims,
  }
  return new SignJWT(JSON.parse(JSON.stringify(payload)))
    .setProtectedHeader(JSON.parse(JSON.stringify({ alg, kid, ...header })))
    .sign(privateKey)
}

/**
 * An identity provider on this machine, whose keys change and which fails as a test
 * likes.
 */
export const provider = {
  issuer: 'https://identity.example/',
  jwksUrl: '',
  keys: [] as readonly SigningKey[],
  requestCount: 0,
  /** Answers instead of the provider, which sends its keys. */
  answer: undefined as RequestListener | undefined,
  /** @param port by default the port that it had before */
  async start(port = Number(new URL(provider.jwksUrl).port)): Promise<void> {
    server = createServer((request, response) => {
      provider.requestCount++
      if (provider.answer !== undefined) {
        return provider.answer(request, response)
      }
      const keys = provider.keys.map(({ jwk }) => jwk)
      response.end(JSON.stringify({ keys }))
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address() as AddressInfo
    provider.jwksUrl = `http://127.0.0.1:${address.port}/jwks`
  },
  /** Nobody answers at its port until it starts again. */
  async stop(): Promise<void> {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  },
}
let server: Server
