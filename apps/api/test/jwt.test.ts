import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Server, startServer } from '@plant-store/harness'
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
  const provider = {
    keys: [] as object[],
    /** Instead of giving the keys. */
    answer: undefined as RequestListener | undefined,
    asked: 0,
    url: '',
    async stop() {
      server.closeAllConnections()
      server.close()
    },
  }
  const server = createServer((request, response) => {
    provider.asked++
    if (provider.answer !== undefined) {
      return provider.answer(request, response)
    }
    response.end(JSON.stringify({ keys: provider.keys }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  provider.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`
  onTestFinished(() => provider.stop())
  return provider
}

/** The second has the form of a JWT. */
const opaqueTokens = ['given-by-the-environment', 'given.by.the-environment']

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

test('JWTs are admitted beside opaque tokens, and logged by their subject', async () => {
  const provider = await startProvider()
  const [first, forged] = await Promise.all(['1', '1'].map(makeKey))
  if (!(first && forged)) {
    throw new Error('no keys')
  }
  provider.keys = [first.jwk]
  await using server = await startServer({
    folder: temporaryFolder(),
    environment: environment(provider.url),
  })
  const token = await first.sign()
  expect(await post(server, token)).toBe(200)
  const answers = Array.from({ length: 10 }, () => get(server, token))
  expect(new Set(await Promise.all(answers))).toEqual(new Set([200]))
  // Once for each thread.
  expect(provider.asked).toBeLessThanOrEqual(2)
  for (const opaque of opaqueTokens) {
    expect(await get(server, opaque), opaque).toBe(200)
  }

  expect(await post(server, await first.sign({ permissions: ['plants:read'] }))).toBe(
    40301,
  )
  expect(await get(server, await forged.sign())).toBe(40102)
  expect(await get(server, token)).toBe(200)

  expect(await get(server, await first.sign({ sub: 'fauna' }))).toBe(200)
  expect(await get(server, await first.sign({ sub: 'fa\nuna', nbf: 2 ** 32 }))).toBe(
    40102,
  )
  expect(await server.end()).toBe(0)
  const linesOf = (subject: string) =>
    server.log.filter(line => 'token' in line && line.token === subject)
  expect(linesOf('fauna')).toHaveLength(1)
  const reason = expect.stringContaining('not valid: its claim "nbf" is in the future')
  expect(linesOf('fa\nuna')).toEqual([expect.objectContaining({ status: 401, reason })])
  expect(linesOf('flora').map(({ status }) => status)).toContain(403)
  // Signed by another key, for whom anybody may claim to be.
  const forgeries = server.log.filter(
    ({ status, reason }) => status === 401 && /signature/.test(`${reason}`),
  )
  expect(forgeries).toHaveLength(1)
  expect(forgeries.filter(line => 'token' in line)).toEqual([])
  expect(server.errors()).toBe('')
})

test('while the provider fails, only JWTs get 503, and the log says why', async () => {
  const provider = await startProvider()
  provider.answer = (_request, response) => response.writeHead(500).end()
  const logger = { error: vi.fn() }
  const tokens = { find: async () => undefined }
  const { signal } = new AbortController()
  const config = readConfig(environment(provider.url))
  const gate = await openGate(config, tokens as never, {
    logger: logger as never,
    signal,
  })
  const token = await (await makeKey('1')).sign()
  const judge = async (token: string) => gate({ token, headers: {} }, 'plants:read')
  await expect(judge(token)).rejects.toMatchObject({ code: 'access-unavailable' })
  expect(await judge(opaqueTokens[0] as string)).toMatchObject({
    name: 'ACCESS_TOKENS[0]',
  })
  const words = "the identity provider's keys cannot be fetched"
  const about = { jwksUrl: provider.url, reason: 'it answered 500' }
  expect(logger.error).toHaveBeenCalledExactlyOnceWith(about, words)
})

test('of a provider that does not listen the log says why', async () => {
  const provider = await startProvider()
  await provider.stop()
  const logger = { error: vi.fn() }
  const { signal } = new AbortController()
  const config = readConfig(environment(provider.url.replace('127.0.0.1', 'localhost')))
  const gate = await openGate(config, { find: async () => undefined } as never, {
    logger: logger as never,
    signal,
  })
  const token = await (await makeKey('1')).sign()

  const refused = Promise.resolve(gate({ token, headers: {} }, 'plants:read'))

  await expect(refused).rejects.toMatchObject({ code: 'access-unavailable' })
  const reason = expect.stringMatching(/^connect ECONNREFUSED /)
  expect(logger.error).toHaveBeenCalledWith(
    expect.objectContaining({ reason }),
    expect.any(String),
  )
})

test('a provider that hangs holds up neither a start nor a stop', async () => {
  const provider = await startProvider()
  provider.answer = () => {}
  await using server = await startServer({
    folder: temporaryFolder(),
    environment: { ...environment(provider.url), SHUTDOWN_TIMEOUT: '60s' },
  })
  const asked = get(server, await (await makeKey('1')).sign())
  expect(await post(server, opaqueTokens[0] as string)).toBe(200)
  const begunAtMs = performance.now()
  expect(await server.end()).toBe(0)
  expect(performance.now() - begunAtMs).toBeLessThan(4000)
  expect(await asked).toBe(50306)
})
