import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { failOtherMethods, open } from './other-methods.ts'

const files = {
  '/docs': ['docs.html', 'text/html; charset=utf-8'],
  '/docs/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/docs/swagger-ui-bundle.js': ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  '/docs/swagger-ui.css': ['swagger-ui.css', 'text/css; charset=utf-8'],
} as const

/** The page runs nothing but these files, and talks to nobody but who it came from. */
const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

/**
 * The reference page: the interface in a browser, open to everybody, to be tried out with a token.
 *
 * @param folder where its files are, with a slash at the end
 */
export function addDocs(app: FastifyInstance, folder: URL): void {
  for (const [url, [file, mediaType]] of Object.entries(files)) {
    // One for everybody, read when it is first asked for: clients may take it as slowly as they like.
    let content: Buffer | undefined
    app.get(url, open, (_request, reply) => {
      content ??= readFileSync(new URL(file, folder))
      reply.headers({ ...headers, 'content-type': mediaType }).send(content)
    })
    failOtherMethods(app, url, ['GET', 'HEAD'], open)
  }
}
