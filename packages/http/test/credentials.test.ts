import { execFileSync, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { request } from 'node:https'
import { join } from 'node:path'
import { AccessError, type Credentials, type Gate } from '@plant-store/access'
import { createPlantUseCases } from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { storeRoutes } from '@plant-store/http'
import { fastify } from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { startMemoryService } from './memory-service.ts'

const plants = createPlantUseCases({ plants: createMemoryPlantRepository() })

test('a gate sees the token, the header fields by names in lower case, and no certificate without TLS', async () => {
  const seen: unknown[] = []
  const gate: Gate = ({ token, headers, certificate }, scope) => {
    seen.push([token, headers['x-tenant'], certificate, scope])
    return { name: 'flora' }
  }
  await using service = await startMemoryService({ gate })
  await fetch(`${service.url}/plants`, { headers: { authorization: 'bearer a.b', 'X-Tenant': 'north' } })
  await fetch(`${service.url}/plants/1`, { method: 'DELETE' })
  const app = fastify()
  app.register(storeRoutes, { plants, gate })
  await app.inject({ url: '/plants', headers: { 'X-Tenant': 'south' } })
  expect(seen).toEqual([
    ['a.b', 'north', undefined, 'plants:read'],
    [undefined, undefined, undefined, 'plants:write'],
    [undefined, 'south', undefined, 'plants:read'],
  ])
})

const openssl = needs('openssl', spawnSync('openssl', ['version']).status === 0)

/** Admits by the certificate alone. */
const byCertificate: Gate = ({ certificate }: Credentials) => {
  if (certificate === undefined) throw new AccessError('no-token', 'a client certificate is required')
  return { name: new X509Certificate(certificate).subject }
}

/** The server asks for certificates, and goes on without a valid one. */
function makeCertificates() {
  const folder = temporaryFolder()
  const make = (name: string, ...more: string[]) => {
    const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
    const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    const files = ['-subj', `/CN=${name}`, '-keyout', key, '-out', cert]
    execFileSync('openssl', ['req', '-x509', ...newKey, '-days', '2', ...files, ...more], { stdio: 'ignore' })
    return { key: readFileSync(key), cert: readFileSync(cert) }
  }
  const server = make('server')
  const ca = make('ca')
  const issued = ['-CA', join(folder, 'ca.pem'), '-CAkey', join(folder, 'ca.key')]
  const tls = { ...server, ca: ca.cert, requestCert: true, rejectUnauthorized: false }
  return { tls, gardener: make('gardener', ...issued), stranger: make('gardener') }
}

interface Identity {
  readonly key: Buffer
  readonly cert: Buffer
}

test(
  'a gate sees the certificate of a client over HTTP/1.1 when it is valid, and only then',
  openssl,
  async () => {
    const { tls, gardener, stranger } = makeCertificates()
    const app = fastify({ https: tls })
    onTestFinished(() => app.close())
    app.register(storeRoutes, { plants, gate: byCertificate })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const ask = async (identity?: Identity) => {
      const asked = request(`${url}/plants`, { ...identity, rejectUnauthorized: false, agent: false }).end()
      const [{ statusCode }] = await once(asked, 'response')
      return statusCode
    }
    expect([await ask(gardener), await ask(stranger), await ask()]).toEqual([200, 401, 401])
  },
)

test('and over HTTP/2', openssl, async () => {
  const { tls, gardener, stranger } = makeCertificates()
  const app = fastify({ http2: true, https: tls })
  onTestFinished(() => app.close())
  app.register(storeRoutes, { plants, gate: byCertificate })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const ask = async (identity?: Identity) => {
    const session = connectHttp2(url, { ...identity, rejectUnauthorized: false })
    const [headers] = await once(session.request({ ':path': '/plants' }), 'response')
    session.destroy()
    return headers[':status']
  }
  expect([await ask(gardener), await ask(stranger), await ask()]).toEqual([200, 401, 401])
})
