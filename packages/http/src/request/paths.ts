import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { RequestError } from '../errors/error-numbers.ts'

/** The methods of all paths together, in their order in Allow. GET brings HEAD. */
const serverMethods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']

export const allowedEverywhere = serverMethods.join(', ')

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
      // RFC 9110, 9.3.7
      if (request.method === 'OPTIONS') {
        reply.code(204).header('allow', allowedEverywhere).send()
      } else {
        done(new RequestError('bad-request', 'only OPTIONS may have the target *'))
      }
      return
    }
    const message = `there is nothing at this path${slashAdvice(request.url)}`
    done(new RequestError('no-such-path', message))
  })
}

/**
 * Collects the routes that are added from now on, without those that Fastify adds for
 * HEAD.
 */
export function collectRoutes(app: FastifyInstance): readonly RouteOptions[] {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', route => {
    if (route.method !== 'HEAD') {
      routes.push({ ...route })
    }
  })
  return routes
}

/** Adds a route to each path that answers 405 to the methods that the path lacks. */
export function refuseOtherMethods(
  app: FastifyInstance,
  routes: readonly RouteOptions[],
): void {
  const byPath = Map.groupBy(routes, patternOf)
  for (const [url, routesOfPath] of byPath) {
    const methods = routesOfPath.flatMap(({ method }) => method)
    const allowed = serverMethods.filter(method =>
      methods.includes(method === 'HEAD' ? 'GET' : method),
    )
    const allow = allowed.join(', ')
    const isOpen = routesOfPath.every(({ config }) => config?.scope === null)
    app.route({
      method: app.supportedMethods.filter(method => !allowed.includes(method)),
      url,
      config: { scope: isOpen ? null : 'any' },
      // A handler would run after the body is read.
      onRequest(request, _reply, done) {
        const message = `the methods of this path are ${allow}${slashAdvice(request.url)}`
        done(new RequestError('method-not-allowed', message, { allow }))
      },
      handler() {
        throw new Error('the hook of this route refuses every request')
      },
    })
  }
}

/** Returns the path of a route without the prefix of the server. */
export function patternOf(route: RouteOptions): string {
  const { routePath } = route as RouteOptions & { readonly routePath: string }
  return routePath || '/'
}

/** Returns the path of a target. */
export function pathOf(target: string): string {
  return target.replace(/[?#].*$/s, '')
}

/** Returns what a message adds for a path that ends in a slash, such as `/plants/`. */
export function slashAdvice(url: string): string {
  const path = pathOf(url)
  if (path.length > 1 && path.endsWith('/')) {
    return ': try it without the slash at its end'
  }
  return ''
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
