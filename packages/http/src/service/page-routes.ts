import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { isMet, type Version } from '@plant-store/domain'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readCondition, toEntityTag } from '../request/conditions.ts'
import { pathOf } from '../request/paths.ts'

/**
 * Adds the API reference, the page at `/browse` if there is one, and the way from the
 * root to the first of them.
 */
export function addPages(
  app: FastifyInstance,
  docsFolder: URL,
  browseFolder: URL | undefined,
): void {
  let first = 'docs'
  addPage(app, 'docs', docs, docsFolder)
  if (browseFolder !== undefined) {
    first = 'browse'
    addPage(app, 'browse', browse, browseFolder)
  }
  // Relative, as in `docs.html`: only the client knows the whole path.
  app.get('/', open, ({ url }, reply) => {
    const path = pathOf(url)
    const lastPart = path.slice(path.lastIndexOf('/') + 1)
    return reply.redirect(path.endsWith('/') ? first : `${lastPart}/${first}`)
  })
}

export const open = { config: { scope: null } }

/** A page runs only its own files and connects only to its own origin. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const docs = {
  files: ['docs.html', 'page.js', 'page.css', 'swagger-ui-bundle.js', 'swagger-ui.css'],
  policy: `${policy}; img-src 'self' data:`,
}

const browse = {
  files: ['browse.html', 'page.css', 'chunk.js', 'forms.js'],
  policy: `${policy}; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'`,
}

const mediaTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/**
 * @param folder with a slash at the end. The build has written the gzip of each file
 * beside it, as `.gz`
 */
function addPage(
  app: FastifyInstance,
  name: string,
  { files, policy }: typeof docs,
  folder: URL,
) {
  const ofDocument = {
    'content-security-policy': policy,
    'cross-origin-opener-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    // Firefox would keep a document in memory together with the storage of its tab. Back
    // would then show it with the token that the user has signed out of.
    'cache-control': 'no-store',
  }
  app.get(`/${name}/`, open, (_request, reply) => reply.redirect(`../${name}`))
  for (const file of files) {
    // A browser shows a script or style as its text. `nosniff` keeps it from seeing more
    // in it, so only documents need the headers that limit one.
    const isPart = /\.(?:js|css)$/.test(file)
    const url = isPart ? `/${name}/${file}` : `/${name}`
    const mediaType = mediaTypes[extname(file)]
    const plain = readOnce(new URL(file, folder))
    const compressed = readOnce(new URL(`${file}.gz`, folder))
    app.get(url, open, (request, reply) => {
      const isCompressed = negotiateGzip(request, reply)
      const { content, version } = isCompressed ? compressed() : plain()
      reply.headers({
        ...(isPart ? { 'cache-control': 'no-cache' } : ofDocument),
        'x-content-type-options': 'nosniff',
        etag: toEntityTag(version),
      })
      if (!isMet({ differs: readCondition(request)?.differs }, version)) {
        return reply.code(304).send(null)
      }
      if (isCompressed) {
        reply.header('content-encoding', 'gzip')
      }
      return reply.header('content-type', mediaType).send(content)
    })
  }
}

/** Reads a file once, for all requests, however slowly clients take it. */
function readOnce(file: URL) {
  let representation: { readonly content: Buffer; readonly version: Version } | undefined
  return () => {
    if (representation === undefined) {
      const content = readFileSync(file)
      const version = hash('sha256', content, 'base64url') as Version
      representation = { content, version }
    }
    return representation
  }
}

/**
 * Returns whether the answer is compressed (RFC 9110, 12.5.3), and has Vary say what that
 * depends on. A client that accepts any coding gets none.
 */
export function negotiateGzip({ headers }: FastifyRequest, reply: FastifyReply): boolean {
  const field = 'accept-encoding'
  const others = reply.getHeader('vary')
  // `allowOrigins` may have set one.
  reply.header('vary', others === undefined ? field : `${others}, ${field}`)
  const accepted = headers[field] ?? ''
  const codings = accepted.toLowerCase().replaceAll(/[ \t]/g, '').split(',')
  return codings.some(coding => /^gzip(?:;q=(?!0(?:\.0*)?$).*)?$/.test(coding))
}
