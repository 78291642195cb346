import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { startMemoryService } from './memory-service.ts'

test.each([
  ['/docs', 'text/html; charset=utf-8', /<html/],
  ['/docs/page.js', 'text/javascript; charset=utf-8', /SwaggerUIBundle/],
  ['/docs/page.css', 'text/css; charset=utf-8', /prefers-color-scheme/],
  ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', /swagger/i],
  ['/docs/swagger-ui.css', 'text/css; charset=utf-8', /\.swagger-ui/],
])('%s may run nothing but the files of the API reference', async (path, mediaType, content) => {
  await using service = await startMemoryService()
  const answer = await fetch(service.url + path)
  expect(await answer.text()).toMatch(content)
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': mediaType,
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  })
  expect((await fetch(service.url + path, { method: 'POST' })).headers.get('allow')).toBe('GET, HEAD')
})

test('a file of the API reference is held in memory once, however many clients take it slowly', async () => {
  await using service = await startMemoryService()
  const { hostname, port } = new URL(service.url)
  const path = '/docs/swagger-ui-bundle.js'
  const { length: fileBytes } = new Uint8Array(await (await fetch(service.url + path)).arrayBuffer())
  const served: Socket[] = []
  service.server.server.on('connection', socket => served.push(socket))
  const clientCount = 100
  // More than the system holds for both ends of a connection.
  const times = 16
  const before = process.memoryUsage().arrayBuffers
  const clients = await Promise.all(
    Array.from({ length: clientCount }, async () => {
      const socket = connect({ host: hostname, port: Number(port) })
      await once(socket, 'connect')
      socket.pause()
      socket.write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`.repeat(times))
      return socket
    }),
  )
  await expect.poll(() => served.filter(each => each.writableLength > 0)).toHaveLength(clientCount)
  const heldBytes = process.memoryUsage().arrayBuffers - before
  expect(heldBytes).toBeLessThan(10 * fileBytes)
  for (const socket of clients) socket.destroy()
})

test.each([
  ['', ['/', '/?from=here', '/docs/', '/docs/?']],
  ['/green', ['/green', '/green?from=/here', '/green/', '/green/docs/']],
])('below "%s", the root and a last slash lead to the API reference', async (prefix, paths) => {
  await using service = await startMemoryService({ baseUrl: new URL(`https://plants.example${prefix}`) })
  const { origin } = new URL(service.url)
  for (const path of paths) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await fetch(origin + path, { method })
      expect([path, answer.redirected, answer.status, answer.url]).toEqual([
        path,
        true,
        200,
        `${origin}${prefix}/docs`,
      ])
    }
    const refused = await fetch(origin + path, { method: 'POST' })
    expect([path, refused.status, refused.headers.get('allow')]).toEqual([path, 405, 'GET, HEAD'])
  }
})
