import { createServer, type RequestListener } from 'node:http'
import { listenLocally, type Server, startServer } from '@plant-store/harness'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../src/config.ts'
import { openGate } from '../src/http/open-gate.ts'
import { alone, ask, create } from './ask.ts'

const issuer = 'https://identity.example/'
const audience = 'https://plants.example'

async function makeKey(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: 'RS256' }
  const sign = (claims: object = {}) =>
    new SignJWT({ sub: 'flora', permissions: ['plants:read', 'plants:write'], ...claims })
      .setProtectedHeader({ alg: 'RS256', kid })
      .setIssuer(issuer)
      .setAudience(audience)
      .setExpirationTime('1h')
      .sign(privateKey)
  return { jwk, sign }
}

/** An identity provider on this machine. */
async function startProvider() {
  const server = createServer((request, response) => {
    provider.requests++
    provider.answer(request, response)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const provider: Provider = {
    url: `http://127.0.0.1:${await listenLocally(server)}/jwks`,
    answer: (_, response) => response.end('{"keys":[]}'),
    requests: 0,
  }
  return provider
}

interface Provider {
  readonly url: string
  /** How it answers a request for its keys. */
  answer: RequestListener
  requests: number
}

/** The second has the form of a JWT. */
const opaqueTokens = ['given-by-the-environment', 'given.by.the-environment'] as const

const environment = (jwksUrl: string) => ({
  HTTP_THREADS: '2',
  ACCESS_TOKENS: opaqueTokens.join(),
  JWT_ISSUER: issuer,
  JWT_AUDIENCE: audience,
  JWT_JWKS_URL: jwksUrl,
})

const get = async (server: Server, token: string) =>
  (await ask(server, 'GET /plants', { token, headers: alone })).outcome()
const post = async (server: Server, token: string) =>
  (await create(server, 1, token)).outcome()

test('JWTs are admitted on every thread, and the log names who is known', async () => {
  const provider = await startProvider()
  const key = await makeKey('1')
  provider.answer = (_, response) => response.end(JSON.stringify({ keys: [key.jwk] }))
  await using server = await startServer({
    folder: temporaryFolder(),
    environment: environment(provider.url),
  })
  const token = await key.sign()
  // Another key under the same id.
  const forger = await makeKey('1')
  const readOnly = await key.sign({ sub: 'reader', permissions: ['plants:read'] })
  const notYetValid = await key.sign({ sub: 'fa\nuna', nbf: 2 ** 32 })

  expect(await post(server, token)).toBe(200)
  const answers = Array.from({ length: 10 }, () => get(server, token))
  expect(await Promise.all(answers)).toEqual(Array(10).fill(200))
  for (const opaque of opaqueTokens) {
    expect(await get(server, opaque), opaque).toBe(200)
  }
  expect(await post(server, readOnly)).toBe(40301)
  expect(await get(server, notYetValid)).toBe(40102)
  expect(await get(server, await forger.sign())).toBe(40102)
  // Each of the two threads fetches the keys at most once.
  expect(provider.requests).toBeLessThanOrEqual(2)
  expect(await server.end()).toBe(0)

  const linesOf = (subject: string) =>
    server.log.filter(line => 'token' in line && line.token === subject)
  expect(linesOf('flora')).toHaveLength(11)
  expect(linesOf('reader')).toMatchObject([{ status: 403 }])
  const reason = expect.stringContaining('not valid: its claim "nbf" is in the future')
  expect(linesOf('fa\nuna')).toMatchObject([{ status: 401, reason }])
  // Anybody can claim any subject in a forged token, so its line names none.
  const forgeries = server.log.filter(
    ({ status, reason }) => status === 401 && /signature/.test(`${reason}`),
  )
  expect(forgeries).toHaveLength(1)
  expect(forgeries.filter(line => 'token' in line)).toEqual([])
  expect(server.errors()).toBe('')
})

/** Opens the gate over a store without tokens. */
async function openGateOf(jwksUrl: string) {
  const logError = vi.fn()
  // The gate uses nothing else of a logger and of the tokens.
  const logger = { error: logError } as never
  const tokens = { find: async () => undefined } as never
  const { signal } = new AbortController()
  const config = readConfig(environment(jwksUrl))
  const gate = await openGate(config, tokens, { logger, signal })
  const judge = async (token: string) => gate({ token, headers: {} }, 'plants:read')
  return { judge, logError }
}

test('a failing provider makes only JWTs unavailable, and the log says why', async () => {
  const provider = await startProvider()
  provider.answer = (_request, response) => response.writeHead(500).end()
  const { judge, logError } = await openGateOf(provider.url)
  const key = await makeKey('1')

  const verdict = judge(await key.sign())

  await expect(verdict).rejects.toMatchObject({ code: 'access-unavailable' })
  expect(await judge(opaqueTokens[0])).toMatchObject({ name: 'ACCESS_TOKENS[0]' })
  expect(logError).toHaveBeenCalledExactlyOnceWith(
    { jwksUrl: provider.url, reason: 'it answered 500' },
    "the identity provider's keys cannot be used",
  )
})

test('a hanging provider delays no start or stop, and its JWTs get 50306', async () => {
  const provider = await startProvider()
  provider.answer = () => {}
  await using server = await startServer({
    folder: temporaryFolder(),
    environment: { ...environment(provider.url), SHUTDOWN_TIMEOUT: '60s' },
  })
  const key = await makeKey('1')
  const waiting = get(server, await key.sign())
  expect(await post(server, opaqueTokens[0])).toBe(200)
  const begunAtMs = performance.now()
  expect(await server.end()).toBe(0)
  // The fetch of the keys would give up after 5 s.
  expect(performance.now() - begunAtMs).toBeLessThan(4000)
  expect(await waiting).toBe(50306)
})
