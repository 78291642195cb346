import { EventEmitter, once } from 'node:events'
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
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

const inSeconds = (ms: number) => Math.floor((Date.now() + ms) / 1000)

/** Signs a token that lacks nothing, unless the claims say otherwise: `undefined` leaves a claim out. */
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

/** An identity provider on this machine, whose keys change and which fails as a test likes. */
export class Provider implements AsyncDisposable {
  readonly issuer = 'https://identity.example/'
  keys: readonly SigningKey[] = []
  /** How often it was asked for its keys. */
  asked = 0
  /** Instead of giving the keys. */
  answer: RequestListener | undefined
  #server: Server | undefined
  #port = 0
  #events = new EventEmitter()

  get jwksUrl(): string {
    return `http://127.0.0.1:${this.#port}/jwks`
  }

  /** @param port the one it had, where it comes back */
  async start(port = this.#port): Promise<void> {
    this.#server = createServer((request, response) => {
      this.asked++
      this.#events.emit('asked')
      if (this.answer !== undefined) return this.answer(request, response)
      response.end(JSON.stringify({ keys: this.keys.map(({ jwk }) => jwk) }))
    })
    this.#server.listen(port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Resolves when it is asked for its keys once more. */
  async nextAsked(): Promise<void> {
    await once(this.#events, 'asked')
  }

  /** Nobody answers at its port until it starts again. */
  async stop(): Promise<void> {
    this.#server?.closeAllConnections()
    this.#server?.close()
    if (this.#server !== undefined) await once(this.#server, 'close')
  }

  [Symbol.asyncDispose] = () => this.stop()
}

export const provider = new Provider()
