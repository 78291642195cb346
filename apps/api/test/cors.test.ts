import type { Server } from '@plant-store/harness'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { start, token } from './ask.ts'
import { connectRaw } from './raw-client.ts'

const corsHeaders = (answer: Response) =>
  [...answer.headers.keys()].filter(name => name.startsWith('access-control-'))
const preflight = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type',
}

let program: Server
beforeAll(async () => {
  program = await start({ CORS_ORIGINS: 'https://plants.example, http://localhost:8080', BODY_LIMIT: '1KiB' })
})
afterAll(() => program[Symbol.asyncDispose]())

test('nobody is let in unless the configuration says so', async () => {
  await using program = await start()
  const origin = 'https://plants.example'
  const answer = await fetch(`${program.url}/plants`, {
    method: 'OPTIONS',
    headers: { origin, ...preflight },
  })
  expect([answer.status, corsHeaders(answer)]).toEqual([401, []])
  const asked = await fetch(`${program.url}/healthz`, { headers: { origin } })
  expect([asked.status, corsHeaders(asked), asked.headers.get('vary')]).toEqual([200, [], null])
})

test('only who is named is let in, and needs a token all the same', async () => {
  const ask = (method: string, path: string, headers: Record<string, string>) =>
    fetch(`${program.url}${path}`, { method, headers })
  for (const origin of ['https://plants.example', 'http://localhost:8080']) {
    for (const path of ['/plants', '/plants/1', '/metrics']) {
      const answer = await ask('OPTIONS', path, { origin, ...preflight })
      expect(answer.status).toBe(204)
      expect(answer.headers.get('access-control-allow-origin')).toBe(origin)
      expect(answer.headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST, PUT, DELETE')
      expect(answer.headers.get('access-control-allow-headers')).toMatch(/^authorization, content-type, /)
      expect(answer.headers.get('vary')).toBe('origin')
      expect(await answer.text()).toBe('')
    }
    const refused = await ask('GET', '/plants', { origin })
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, origin])
    const exposed = refused.headers.get('access-control-expose-headers')?.split(', ')
    expect(exposed).toEqual(
      expect.arrayContaining(['link', 'www-authenticate', 'retry-after', 'x-request-id']),
    )
    expect(refused.headers.has('access-control-allow-credentials')).toBe(false)
    // Without the question of a preflight it is a method like any other.
    const authorization = `Bearer ${token}`
    expect((await ask('OPTIONS', '/plants', { origin })).status).toBe(401)
    expect((await ask('OPTIONS', '/plants', { origin, authorization })).status).toBe(405)
  }
  const others = [
    'https://plants.example.org',
    'http://plants.example',
    'https://plants.example:8443',
    'null',
  ]
  for (const origin of [...others, 'HTTPS://PLANTS.EXAMPLE']) {
    const answer = await ask('OPTIONS', '/plants', { origin, ...preflight })
    expect([answer.status, corsHeaders(answer)]).toEqual([401, []])
    expect(corsHeaders(await ask('GET', '/healthz', { origin }))).toEqual([])
  }
  expect((await ask('OPTIONS', '/healthz', {})).status).toBe(405)
})

test('a page may read every answer to a request, whatever refused it', async () => {
  const { host } = new URL(program.url)
  const fields = `origin: https://plants.example\r\nauthorization: Bearer ${token}\r\n`
  const post = `POST /plants HTTP/1.1\r\nhost: ${host}\r\n${fields}content-type: application/json\r\n`
  for (const [bytes, status] of [
    [`GET /plants/1 HTTP/1.1\r\nhost: ${host}\r\n${fields}\r\n`, 404],
    [`GET /nowhere HTTP/1.1\r\nhost: ${host}\r\n${fields}\r\n`, 404],
    [`GET /plants/%zz HTTP/1.1\r\nhost: ${host}\r\n${fields}\r\n`, 400],
    [`GET /plants HTTP/1.1\r\nhost: a b\r\n${fields}\r\n`, 400],
    [`GET /plants HTTP/1.1\r\nhost: ${host}\r\n${fields}expect: a miracle\r\n\r\n`, 417],
    [`${post}expect: 100-continue\r\ncontent-length: 9999\r\n\r\n`, 413],
    [`${post}transfer-encoding: chunked\r\n\r\nzz\r\n`, 400],
    [`PATCH /plants HTTP/1.1\r\nhost: ${host}\r\n${fields}\r\n`, 405],
  ] as const) {
    const client = await connectRaw(program.url)
    client.send(bytes)
    const answer = await client.answer()
    client.socket.destroy()
    expect([bytes, answer?.status]).toEqual([bytes, status])
    const { headers = new Map() } = answer ?? {}
    expect([bytes, headers.get('access-control-allow-origin')]).toEqual([bytes, 'https://plants.example'])
    expect(headers.get('access-control-expose-headers')).toMatch(/www-authenticate/)
    expect(headers.get('vary')).toBe('origin')
  }
})
