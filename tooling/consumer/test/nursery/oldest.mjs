// Uses a package with nothing newer than the oldest Node that the package names: `node oldest.mjs PACKAGE`.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'

const uses = {
  async access() {
    const { createGate, hashToken, mintToken } = await import('@plant-store/access')
    const token = mintToken()
    const flora = { name: 'flora', scopes: ['plants:read'], createdAt: new Date() }
    const find = async hash => (hash === hashToken(token) ? flora : undefined)
    const gate = createGate({ tokens: { find, markUsed: async () => {} } })
    assert.equal((await gate({ token }, 'plants:read')).name, 'flora')
  },
  async client() {
    const { createPlantClient } = await import('@plant-store/client')
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'application/json')
      response.end('[{"id":9007199254740993,"name":"Fern"}]')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const baseUrl = `http://127.0.0.1:${server.address().port}`
    const client = createPlantClient({ baseUrl, token: 'any', attemptsMax: 1 })
    assert.equal((await client.list()).plants[0].id, 9007199254740993n)
    server.close()
    server.closeAllConnections()
    await assert.rejects(client.list(), { reason: 'connection-failed' })
  },
  async domain() {
    const { createMemoryPlantRepository, plantRepositoryContract } = await import(
      '@plant-store/domain/testing'
    )
    for (const { run } of plantRepositoryContract) await run(createMemoryPlantRepository())
  },
  async jwt() {
    const { createJwtGate } = await import('@plant-store/jwt')
    const { exportJWK, generateKeyPair, SignJWT } = await import('jose')
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const keys = [await exportJWK(publicKey)]
    const provider = createServer((_, response) => response.end(JSON.stringify({ keys })))
    await once(provider.listen(0, '127.0.0.1'), 'listening')
    const [issuer, audience] = ['https://identity.example/', 'https://plants.example']
    const jwksUrl = `http://127.0.0.1:${provider.address().port}/jwks`
    const gate = createJwtGate({ issuer, audience, jwksUrl })
    const token = await new SignJWT({ iss: issuer, aud: audience, sub: 'flora', scope: 'plants:read' })
      .setProtectedHeader({ alg: 'ES256' })
      .setExpirationTime('5m')
      .sign(privateKey)
    assert.equal((await gate({ token, headers: {} }, 'plants:read')).name, 'flora')
    provider.close()
    provider.closeAllConnections()
  },
  async json() {
    const { parseJsonRecord } = await import('@plant-store/json')
    assert.deepEqual(parseJsonRecord('{"id": 9007199254740993, "height": 1.5}'), {
      id: 9007199254740993n,
      height: 1.5,
    })
    assert.throws(() => parseJsonRecord('{"id": 1, "id": 2}'), SyntaxError)
  },
  async webhooks() {
    const { mintSecret, parseWebhookUrl, signedHeaders } = await import('@plant-store/webhooks')
    const url = 'https://shop.example/plants'
    assert.equal(parseWebhookUrl(url, false), url)
    assert.match(signedHeaders('1', 0, '', mintSecret())['webhook-signature'], /^v1,/)
  },
}
await uses[process.argv[2]]()
console.log('works')
