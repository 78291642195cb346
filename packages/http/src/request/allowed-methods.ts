import type { FastifyInstance, RouteOptions } from 'fastify'
import { RequestError } from '../errors/request-error.ts'
import type { RouteScope } from './authenticate.ts'
import { slashAdvice } from './paths.ts'

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
  const byPath = Map.groupBy(routes, pathOf)
  for (const [path, routesOfPath] of byPath) {
    const methods = routesOfPath.flatMap(({ method }) => method)
    const isOpen = routesOfPath.every(({ config }) => config?.scope === null)
    addRefusal(app, path, methods, isOpen ? null : 'any')
  }
}

/** Returns the path of a route without the prefix of the server. */
export function pathOf(route: RouteOptions): string {
  const { routePath } = route as RouteOptions & { readonly routePath: string }
  return routePath || '/'
}

/** The order of methods in Allow. GET brings HEAD. */
const methodOrder = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']

function addRefusal(
  app: FastifyInstance,
  url: string,
  methods: readonly string[],
  scope: RouteScope,
): void {
  const allowed = methodOrder.filter(method =>
    methods.includes(method === 'HEAD' ? 'GET' : method),
  )
  const allow = allowed.join(', ')
  app.route({
    method: app.supportedMethods.filter(method => !allowed.includes(method)),
    url,
    config: { scope },
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
