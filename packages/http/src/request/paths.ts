import type { FastifyInstance } from 'fastify'
import { RequestError } from '../errors/request-error.ts'

/**
 * Refuses paths without a route, because a 404 handler would run after the body is read.
 */
export function refuseUnknownPaths(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (!request.is404) {
      done()
      return
    }
    const message = `there is nothing at this path${slashAdvice(request.url)}`
    done(new RequestError('no-such-path', message))
  })
}

/** Returns what a message adds for a path that ends in a slash, such as `/plants/`. */
export function slashAdvice(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1)
  if (path.length > 1 && path.endsWith('/')) {
    return ': try it without the slash at its end'
  }
  return ''
}

/** Removes the server's name, which a target may include (RFC 9112, 3.2.2). */
export function originForm(target: string): string {
  if (target.startsWith('/')) {
    return target
  }
  return /^https?:\/\/[^/?#]*(\/.*)/i.exec(target)?.[1] ?? `/${target}`
}
