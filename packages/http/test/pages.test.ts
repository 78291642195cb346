import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { startService } from './memory-service.ts'

/** A folder with the files of the page, as its build writes them. */
function writePage(): URL {
  const folder = temporaryFolder()
  for (const [file, text] of Object.entries({
    'browse.html': '<html>',
    'page.js': 'run()',
    'page.css': 'p {}',
  })) {
    writeFileSync(join(folder, file), text)
    writeFileSync(join(folder, `${file}.gz`), gzipSync(text))
  }
  return pathToFileURL(`${folder}/`)
}

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const docsPolicy = `${policy}; img-src 'self' data:`
const browsePolicy = `${policy}; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'`

const files: readonly (readonly [
  path: string,
  mediaType: string,
  content: RegExp,
  policy: string,
])[] = [
  ['/docs', 'text/html; charset=utf-8', /<html/, docsPolicy],
  ['/docs/page.js', 'text/javascript; charset=utf-8', /SwaggerUIBundle/, docsPolicy],
  ['/docs/page.css', 'text/css; charset=utf-8', /prefers-color-scheme/, docsPolicy],
  [
    '/docs/swagger-ui-bundle.js',
    'text/javascript; charset=utf-8',
    /swagger/i,
    docsPolicy,
  ],
  ['/docs/swagger-ui.css', 'text/css; charset=utf-8', /\.swagger-ui/, docsPolicy],
  ['/browse', 'text/html; charset=utf-8', /<html/, browsePolicy],
  ['/browse/page.js', 'text/javascript; charset=utf-8', /run/, browsePolicy],
  ['/browse/page.css', 'text/css; charset=utf-8', /p {}/, browsePolicy],
]

test('each file of a page is compressed for a browser, gets there once, and may run nothing but files of its page', async () => {
  await using service = await startService({ page: writePage() })
  let docsBytes = 0
  for (const [path, mediaType, content, policy] of files) {
    const ask = (headers: Record<string, string>) =>
      fetch(service.url + path, { headers })
    const tags = new Set<string | null>()
    for (const [accepted, coding] of [
      ['gzip, deflate, br, zstd', 'gzip'],
      ['identity', null],
    ] as const) {
      const answer = await ask({ 'accept-encoding': accepted })
      const etag = answer.headers.get('etag') as string
      tags.add(etag)
      expect(answer.headers.get('content-encoding')).toBe(coding)
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-type': mediaType,
        'content-security-policy': policy,
        'cross-origin-opener-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-cache',
        vary: 'accept-encoding',
      })
      expect(await answer.text()).toMatch(content)
      const again = await ask({ 'accept-encoding': accepted, 'if-none-match': etag })
      expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([
        304,
        etag,
        '',
      ])
      if (path.startsWith('/docs') && coding === 'gzip') {
        docsBytes += Number(answer.headers.get('content-length'))
      }
    }
    expect(tags.size).toBe(2)
    expect(
      (await fetch(service.url + path, { method: 'POST' })).headers.get('allow'),
    ).toBe('GET, HEAD')
  }
  expect(docsBytes).toBeGreaterThan(100_000)
  expect(docsBytes).toBeLessThan(490_000)

  const ask = (headers: Record<string, string>) =>
    fetch(`${service.url}/docs`, { headers })
  for (const [accepted, coding] of [
    ['identity;q=1, GZIP ; q=0.5', 'gzip'],
    ['gzip;q=0, br', null],
    ['*', null],
  ] as const) {
    expect(
      (await ask({ 'accept-encoding': accepted })).headers.get('content-encoding'),
    ).toBe(coding)
  }
  const etag = (await ask({})).headers.get('etag') as string
  for (const [tags, status] of [
    [`"other", W/${etag}`, 304],
    ['*', 304],
    ['"other"', 200],
  ] as const) {
    expect((await ask({ 'if-none-match': tags })).status).toBe(status)
  }
})

test('a file of the API reference is held in memory once for all clients', async () => {
  await using service = await startService()
  const path = '/docs/swagger-ui-bundle.js'
  const uncompressed = await fetch(service.url + path, {
    headers: { 'accept-encoding': 'identity' },
  })
  const fileBytes = (await uncompressed.arrayBuffer()).byteLength
  const before = process.memoryUsage().arrayBuffers
  const count = 20
  const clients = await service.connectMany(count)
  // More than the system holds for both ends of a connection.
  for (const { socket } of clients) {
    socket.pause().write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`.repeat(16))
  }
  await expect
    .poll(() => clients.filter(({ served }) => served.writableLength > 0))
    .toHaveLength(count)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(5 * fileBytes)
  for (const { socket } of clients) {
    socket.destroy()
  }
})

test.each([
  ['', 'docs', ['/', '/?from=here', '/docs/', '/docs/?']],
  ['/green', 'docs', ['/green', '/green?from=/here', '/green/', '/green/docs/']],
  ['', 'browse', ['/', '/browse/']],
  ['/green', 'browse', ['/green', '/green/', '/green/browse/?']],
] as const)(
  'below "%s", the root and a last slash lead to /%s',
  async (prefix, name, paths) => {
    await using service = await startService({
      baseUrl: new URL(`https://plants.example${prefix}`),
      ...(name === 'browse' && { page: writePage() }),
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
      expect([path, refused.status, refused.headers.get('allow')]).toEqual([
        path,
        405,
        'GET, HEAD',
      ])
    }
  },
)
