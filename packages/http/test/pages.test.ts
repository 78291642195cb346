import assert from 'node:assert/strict'
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
  const texts = {
    'browse.html': '<html>',
    'page.js': 'run()',
    'page.css': 'p {}',
  }
  for (const [file, text] of Object.entries(texts)) {
    writeFileSync(join(folder, file), text)
    writeFileSync(join(folder, `${file}.gz`), gzipSync(text))
  }
  return pathToFileURL(`${folder}/`)
}

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
const docsPolicy = `${policy}; img-src 'self' data:`
const browsePolicy = `${policy}; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'`

const html = 'text/html; charset=utf-8'
const javascript = 'text/javascript; charset=utf-8'
const css = 'text/css; charset=utf-8'

const files = [
  { path: '/docs', mediaType: html, content: /<html/ },
  { path: '/docs/page.js', mediaType: javascript, content: /SwaggerUIBundle/ },
  { path: '/docs/page.css', mediaType: css, content: /prefers-color-scheme/ },
  { path: '/docs/swagger-ui-bundle.js', mediaType: javascript, content: /swagger/i },
  { path: '/docs/swagger-ui.css', mediaType: css, content: /\.swagger-ui/ },
  { path: '/browse', mediaType: html, content: /<html/ },
  { path: '/browse/page.js', mediaType: javascript, content: /run/ },
  { path: '/browse/page.css', mediaType: css, content: /p {}/ },
]

test.each(files)(
  'the file $path of a page is cached, limited and compressed',
  async file => {
    await using service = await startService({ page: writePage() })
    const url = service.url + file.path

    const compressed = await fetch(url, {
      headers: { 'accept-encoding': 'gzip, deflate, br, zstd' },
    })
    const plain = await fetch(url, { headers: { 'accept-encoding': 'identity' } })
    const posted = await fetch(url, { method: 'POST' })

    for (const [answer, accepted, coding] of [
      [compressed, 'gzip, deflate, br, zstd', 'gzip'],
      [plain, 'identity', null],
    ] as const) {
      const etag = tagOf(answer)
      expect(answer.headers.get('content-encoding'), accepted).toBe(coding)
      expect(Object.fromEntries(answer.headers), accepted).toMatchObject({
        'content-type': file.mediaType,
        'content-security-policy': file.path.startsWith('/docs')
          ? docsPolicy
          : browsePolicy,
        'cross-origin-opener-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-cache',
        vary: 'accept-encoding',
      })
      expect(await answer.text(), accepted).toMatch(file.content)

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
  await using service = await startService({ page: writePage() })
  const paths = files.map(({ path }) => path).filter(path => path.startsWith('/docs'))

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
  {
    why: 'gzip is accepted in capitals, with a lower weight',
    accepted: 'identity;q=1, GZIP ; q=0.5',
    coding: 'gzip',
  },
  { why: 'gzip is refused by its weight', accepted: 'gzip;q=0, br', coding: null },
  { why: 'only an asterisk is accepted', accepted: '*', coding: null },
])('the coding of a page is $coding where $why', async ({ accepted, coding }) => {
  await using service = await startService()

  const answer = await fetch(`${service.url}/docs`, {
    headers: { 'accept-encoding': accepted },
  })

  expect(answer.headers.get('content-encoding')).toBe(coding)
})

test.each([
  {
    why: 'one of several tags is current, but weak',
    tagsOf: (current: string) => `"other", W/${current}`,
    status: 304,
  },
  { why: 'any tag will do', tagsOf: () => '*', status: 304 },
  { why: 'the tag is another', tagsOf: () => '"other"', status: 200 },
])('a page is answered with $status where $why', async ({ tagsOf, status }) => {
  await using service = await startService()
  const url = `${service.url}/docs`
  const current = tagOf(await fetch(url))

  const answer = await fetch(url, { headers: { 'if-none-match': tagsOf(current) } })

  expect(answer.status).toBe(status)
})

/** Returns the entity tag of an answer. */
function tagOf({ headers }: Response): string {
  const etag = headers.get('etag')
  assert(etag !== null, 'the answer has an entity tag')
  return etag
}

test('a file of the API reference is held in memory once for all clients', async () => {
  await using service = await startService()
  const path = '/docs/swagger-ui-bundle.js'
  const uncompressed = await fetch(service.url + path, {
    headers: { 'accept-encoding': 'identity' },
  })
  const fileBytes = (await uncompressed.arrayBuffer()).byteLength
  const bytesBefore = process.memoryUsage().arrayBuffers
  const count = 20
  const clients = await service.connectMany(count)

  // Sixteen answers are more than the system holds for both ends of a connection.
  for (const { socket } of clients) {
    socket.pause().write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`.repeat(16))
  }
  await expect
    .poll(() => clients.filter(({ served }) => served.writableLength > 0))
    .toHaveLength(count)

  const heldBytes = process.memoryUsage().arrayBuffers - bytesBefore
  expect(heldBytes).toBeLessThan(5 * fileBytes)
  for (const { socket } of clients) {
    socket.destroy()
  }
})

test.each([
  {
    prefix: '',
    name: 'docs',
    paths: ['/', '/?from=here', '/docs/', '/docs/?'],
  },
  {
    prefix: '/green',
    name: 'docs',
    paths: ['/green', '/green?from=/here', '/green/', '/green/docs/'],
  },
  {
    prefix: '',
    name: 'browse',
    paths: ['/', '/browse/'],
  },
  {
    prefix: '/green',
    name: 'browse',
    paths: ['/green', '/green/', '/green/browse/?'],
  },
])('below "$prefix", the root and a last slash lead to /$name', async row => {
  await using service = await startService({
    baseUrl: new URL(`https://plants.example${row.prefix}`),
    ...(row.name === 'browse' && { page: writePage() }),
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

    const refused = await fetch(origin + path, { method: 'POST' })
    expect(refused.status, `POST ${path}`).toBe(405)
    expect(refused.headers.get('allow'), `POST ${path}`).toBe('GET, HEAD')
  }
})
