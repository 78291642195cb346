import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

/** A folder with the files of the page, as its build writes them. */
function writePage(): URL {
  const folder = temporaryFolder(afterAll)
  const texts = {
    'browse.html': '<html>',
    'page.css': 'p {}',
    'chunk.js': 'run()',
    'forms.js': 'open()',
  }
  for (const [file, text] of Object.entries(texts)) {
    writeFileSync(join(folder, file), text)
    writeFileSync(join(folder, `${file}.gz`), gzipSync(text))
  }
  return pathToFileURL(`${folder}/`)
}

const page = writePage()
const service = await startService({ page })
afterAll(() => service[Symbol.asyncDispose]())

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const docsPolicy = `${policy}; img-src 'self' data:`
const browsePolicy = `${policy}; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'`

const html = 'text/html; charset=utf-8'
const javascript = 'text/javascript; charset=utf-8'
const css = 'text/css; charset=utf-8'

const files = [
  ['/docs', html, /<html/],
  ['/docs/page.js', javascript, /SwaggerUIBundle/],
  ['/docs/page.css', css, /prefers-color-scheme/],
  ['/docs/swagger-ui-bundle.js', javascript, /swagger/i],
  ['/docs/swagger-ui.css', css, /\.swagger-ui/],
  ['/browse', html, /<html/],
  ['/browse/page.css', css, /p {}/],
  ['/browse/chunk.js', javascript, /run/],
  ['/browse/forms.js', javascript, /open/],
] as const

test.each(files)(
  'the file %s of a page is tagged, limited and compressed',
  async (path, mediaType, content) => {
    const url = service.url + path

    const compressed = await fetch(url, {
      headers: { 'accept-encoding': 'gzip, deflate, br, zstd' },
    })
    const plain = await fetch(url, { headers: { 'accept-encoding': 'identity' } })
    const posted = await fetch(url, { method: 'POST' })

    const documentPolicy = path.startsWith('/docs') ? docsPolicy : browsePolicy
    const isDocument = mediaType === html
    for (const [answer, accepted, coding] of [
      [compressed, 'gzip, deflate, br, zstd', 'gzip'],
      [plain, 'identity', null],
    ] as const) {
      const etag = tagOf(answer)
      expect(answer.headers.get('content-encoding'), accepted).toBe(coding)
      expect(Object.fromEntries(answer.headers), accepted).toMatchObject({
        'content-type': mediaType,
        ...(isDocument && {
          'content-security-policy': documentPolicy,
          'cross-origin-opener-policy': 'same-origin',
          'referrer-policy': 'no-referrer',
        }),
        'x-content-type-options': 'nosniff',
        'cache-control': isDocument ? 'no-store' : 'no-cache',
        vary: 'accept-encoding',
      })
      expect(await answer.text(), accepted).toMatch(content)

      const again = await fetch(url, {
        headers: { 'accept-encoding': accepted, 'if-none-match': etag },
      })
      expect(again.status, accepted).toBe(304)
      expect(tagOf(again), accepted).toBe(etag)
      expect(await again.text(), accepted).toBe('')
    }
    expect(tagOf(compressed)).not.toBe(tagOf(plain))
    expect(posted.headers.get('allow')).toBe('GET, HEAD')
  },
)

test('the files of the API reference need between 100 and 490 kB', async () => {
  const paths = files.map(([path]) => path).filter(path => path.startsWith('/docs'))

  let bytes = 0
  for (const path of paths) {
    const headers = { 'accept-encoding': 'gzip' }
    const answer = await fetch(service.url + path, { headers })
    bytes += Number(answer.headers.get('content-length'))
  }

  expect(bytes).toBeGreaterThan(100_000)
  expect(bytes).toBeLessThan(490_000)
})

test.each([
  ['identity;q=1, GZIP ; q=0.5', 'gzip'],
  ['gzip;q=0, br', null],
  ['*', null],
])(
  'the coding of a page for a client that accepts %s is %s',
  async (accepted, coding) => {
    const answer = await fetch(`${service.url}/docs`, {
      headers: { 'accept-encoding': accepted },
    })

    expect(answer.headers.get('content-encoding')).toBe(coding)
  },
)

/** Returns the entity tag of an answer. */
function tagOf({ headers }: Response): string {
  const etag = headers.get('etag')
  assert(etag !== null, 'the answer has an entity tag')
  return etag
}

test('a file of the API reference is held in memory once for all clients', async () => {
  const path = '/docs/swagger-ui-bundle.js'
  const uncompressed = await fetch(service.url + path, {
    headers: { 'accept-encoding': 'identity' },
  })
  const fileBytes = (await uncompressed.arrayBuffer()).byteLength
  const bytesBefore = process.memoryUsage().arrayBuffers
  const count = 8
  const clients = await service.connectMany(count)

  // Eight answers are more than the system holds for both ends of a connection.
  for (const { socket } of clients) {
    socket.pause().write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`.repeat(8))
  }
  await expect
    .poll(() => clients.filter(({ served }) => served.writableLength > 0))
    .toHaveLength(count)

  const heldBytes = process.memoryUsage().arrayBuffers - bytesBefore
  expect(heldBytes).toBeLessThan(4 * fileBytes)
})

test.each([
  { prefix: '', name: 'docs', paths: ['/', '/?from=here', '/docs/', '/docs/?'] },
  { prefix: '/green', name: 'docs', paths: ['/green', '/green?from=/here', '/green/'] },
  { prefix: '/green', name: 'browse', paths: ['/green', '/green/', '/green/browse/?'] },
])('below "$prefix", the root and a last slash lead to /$name', async row => {
  await using service = await startService({
    baseUrl: new URL(`https://plants.example${row.prefix}`),
    ...(row.name === 'browse' && { page }),
  })
  const { origin } = new URL(service.url)
  const pageUrl = `${origin}${row.prefix}/${row.name}`

  for (const path of row.paths) {
    for (const method of ['GET', 'HEAD']) {
      const { redirected, status, url } = await fetch(origin + path, { method })
      const answer = { redirected, status, url }
      const expected = { redirected: true, status: 200, url: pageUrl }
      expect(answer, `${method} ${path}`).toEqual(expected)
    }
  }
})
