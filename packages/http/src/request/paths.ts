import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RequestError } from '../errors/request-error.ts'

/**
 * Refuses paths without a route, because a 404 handler would run after the body is read.
 */
export function refuseUnknownPaths(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) {
      done()
      return
    }
    if (isAboutServer(request.method, request.originalUrl)) {
      answerAboutServer(request, reply)
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

/** The methods of all paths together. */
export const serverMethods = 'GET, HEAD, POST, PUT, DELETE'

/** Answers a request about the server as a whole (RFC 9110, 9.3.7). */
function answerAboutServer({ method }: FastifyRequest, reply: FastifyReply): void {
  if (method !== 'OPTIONS') {
    throw new RequestError('bad-request', 'only OPTIONS may have the target *')
  }
  reply.code(204).header('allow', serverMethods).send()
}

/** A target that includes the server's name (RFC 9112, 3.2.2). */
const absoluteForm = /^https?:\/\/([^/?#]*)(.*)$/is

/** Returns the host and port that a target may include. */
export function authorityOf(target: string): string | undefined {
  if (target.startsWith('/')) {
    return undefined
  }
  return absoluteForm.exec(target)?.[1]
}

/** Whether a target means the server as a whole (RFC 9112, 3.2.4). */
function isAboutServer(method: string | undefined, target: string): boolean {
  const isWithoutPath = absoluteForm.exec(target)?.[2] === ''
  return target === '*' || (method === 'OPTIONS' && isWithoutPath)
}

/** Removes the server's name from a target, and begins it with a slash. */
export function originForm({ method, url: target = '/' }: IncomingMessage): string {
  if (target.startsWith('/')) {
    return target
  }
  if (isAboutServer(method, target)) {
    return '/*'
  }
  const rest = absoluteForm.exec(target)?.[2] ?? target
  return rest.startsWith('/') ? rest : `/${rest}`
}
