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
  return {
    kid,
    alg,
    privateKey,
    jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' },
  }
}

const inSeconds = (ms: number) => Math.floor((Date.now() + ms) / 1000)

/**
 * Signs a token that lacks nothing, unless the claims say otherwise: `undefined` leaves a
 * claim out.
 */
export function sign(
  { kid, alg, privateKey }: SigningKey,
  claims: object = {},
  header: { readonly kid?: string | undefined; readonly alg?: string } = {},
): Promise<string> {
  const payload = {
    iss: provider.issuer,
    aud: audience,
    sub: 'flora',
    scope: 'openid plants:read plants:write',
    exp: inSeconds(60_000),
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
  /** How often it was asked for its keys. */
  asked: 0,
  /** Instead of giving the keys. */
  answer: undefined as RequestListener | undefined,
  /** @param port the one it had, where it comes back */
  async start(port = Number(new URL(provider.jwksUrl).port)): Promise<void> {
    server = createServer((request, response) => {
      provider.asked++
      if (provider.answer !== undefined) {
        return provider.answer(request, response)
      }
      response.end(JSON.stringify({ keys: provider.keys.map(({ jwk }) => jwk) }))
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    provider.jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`
  },
  /** Nobody answers at its port until it starts again. */
  async stop(): Promise<void> {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  },
}
let server: Server
