import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { startMemoryService } from './memory-service.ts'

/** A folder with the files of the page, as its build writes them. */
function writePage(): URL {
  const folder = temporaryFolder()
  for (const [file, text] of Object.entries({
    'browse.html': '<html>',
    'page.js': 'run()',
    'page.css': 'p {}',
  }))
    for (const [name, content] of [
      [file, text],
      [`${file}.gz`, gzipSync(text)],
    ] as const)
      writeFileSync(join(folder, name), content)
  return pathToFileURL(`${folder}/`)
}

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const docsPolicy = `${policy}; img-src 'self' data:`
const browsePolicy = `${policy}; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'`

const files: readonly (readonly [path: string, mediaType: string, content: RegExp, policy: string])[] = [
  ['/docs', 'text/html; charset=utf-8', /<html/, docsPolicy],
  ['/docs/page.js', 'text/javascript; charset=utf-8', /SwaggerUIBundle/, docsPolicy],
  ['/docs/page.css', 'text/css; charset=utf-8', /prefers-color-scheme/, docsPolicy],
  ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', /swagger/i, docsPolicy],
  ['/docs/swagger-ui.css', 'text/css; charset=utf-8', /\.swagger-ui/, docsPolicy],
  ['/browse', 'text/html; charset=utf-8', /<html/, browsePolicy],
  ['/browse/page.js', 'text/javascript; charset=utf-8', /run/, browsePolicy],
  ['/browse/page.css', 'text/css; charset=utf-8', /p {}/, browsePolicy],
]

test.each(files)('%s may run nothing but files of its page', async (path, mediaType, content, policy) => {
  await using service = await startMemoryService({ page: writePage() })
  const answer = await fetch(service.url + path)
  expect(await answer.text()).toMatch(content)
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': mediaType,
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  })
  expect((await fetch(service.url + path, { method: 'POST' })).headers.get('allow')).toBe('GET, HEAD')
})

test('a browser gets each file compressed, and only once', async () => {
  await using service = await startMemoryService({ page: writePage() })
  let docsBytes = 0
  for (const [path, , content] of files) {
    const ask = (headers: Record<string, string>) => fetch(service.url + path, { headers })
    const tags = new Set<string | null>()
    for (const [accepted, coding] of [
      ['gzip, deflate, br, zstd', 'gzip'],
      ['identity;q=1, GZIP ; q=0.5', 'gzip'],
      ['gzip;q=0, br', null],
      ['*', null],
    ] as const) {
      const answer = await ask({ 'accept-encoding': accepted })
      const { headers } = answer
      const etag = headers.get('etag') as string
      tags.add(etag)
      expect([headers.get('content-encoding'), headers.get('vary')]).toEqual([coding, 'Accept-Encoding'])
      expect(await answer.text()).toMatch(content)
      for (const sent of [etag, `"other", W/${etag}`, '*']) {
        const again = await ask({ 'accept-encoding': accepted, 'if-none-match': sent })
        expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, ''])
      }
      expect((await ask({ 'accept-encoding': accepted, 'if-none-match': '"other"' })).status).toBe(200)
      if (path.startsWith('/docs') && accepted.endsWith('zstd'))
        docsBytes += Number(headers.get('content-length'))
    }
    expect(tags.size).toBe(2)
  }
  expect(docsBytes).toBeGreaterThan(100_000)
  expect(docsBytes).toBeLessThan(490_000)
})

test('a file of the API reference is held in memory once, however many clients take it slowly', async () => {
  await using service = await startMemoryService()
  const { hostname, port } = new URL(service.url)
  const path = '/docs/swagger-ui-bundle.js'
  const uncompressed = await fetch(service.url + path, { headers: { 'accept-encoding': 'identity' } })
  const fileBytes = (await uncompressed.arrayBuffer()).byteLength
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
  ['', 'docs', ['/', '/?from=here', '/docs/', '/docs/?']],
  ['/green', 'docs', ['/green', '/green?from=/here', '/green/', '/green/docs/']],
  ['', 'browse', ['/', '/browse/']],
  ['/green', 'browse', ['/green', '/green/', '/green/browse/?']],
] as const)('below "%s", the root and a last slash lead to /%s', async (prefix, name, paths) => {
  const page = name === 'browse' ? writePage() : undefined
  await using service = await startMemoryService({
    baseUrl: new URL(`https://plants.example${prefix}`),
    ...(page && { page }),
  })
  const { origin } = new URL(service.url)
  for (const path of paths) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await fetch(origin + path, { method })
      expect([path, answer.redirected, answer.status, answer.url]).toEqual([
        path,
        true,
        200,
        `${origin}${prefix}/${name}`,
      ])
    }
    const refused = await fetch(origin + path, { method: 'POST' })
    expect([path, refused.status, refused.headers.get('allow')]).toEqual([path, 405, 'GET, HEAD'])
  }
})
