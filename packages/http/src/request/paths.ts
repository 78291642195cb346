import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, onRouteHookHandler } from 'fastify'
import { RequestError } from '../errors/error-numbers.ts'

/** The methods of all paths together, in their order in Allow. */
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

/** A route that was added to Fastify. */
export type AddedRoute = Parameters<onRouteHookHandler>[0]

/** Collects the routes that are added from now on. */
export function collectRoutes(app: FastifyInstance): readonly AddedRoute[] {
  const routes: AddedRoute[] = []
  app.addHook('onRoute', route => {
    routes.push({ ...route })
  })
  return routes
}

/** Adds a route to each path that answers 405 to the methods that the path lacks. */
export function refuseOtherMethods(
  app: FastifyInstance,
  routes: readonly AddedRoute[],
): void {
  for (const [url, routesOfPath] of Map.groupBy(routes, patternOf)) {
    const methods = routesOfPath.flatMap(({ method }) => method)
    const allowed = serverMethods.filter(method => methods.includes(method))
    const allow = allowed.join(', ')
    app.route({
      method: app.supportedMethods.filter(method => !allowed.includes(method)),
      url,
      config: { scope: routesOfPath.every(isOpen) ? null : 'any' },
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
export function patternOf({ routePath }: AddedRoute): string {
  return routePath || '/'
}

/** Whether a route needs no token. */
export function isOpen({ config }: AddedRoute): boolean {
  return config?.scope === null
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
  return absoluteForm.exec(target)?.[1]
}

/** Whether a target means the server as a whole (RFC 9112, 3.2.4). */
function isAboutServer(method: string | undefined, target: string) {
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
