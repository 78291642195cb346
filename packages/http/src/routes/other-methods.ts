import { METHODS } from 'node:http'
import type { FastifyInstance, RouteOptions } from 'fastify'

/** Adds every method that Node parses to the router, so that a path can answer 405. */
export function knowAllMethods(app: FastifyInstance): void {
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  }
}

/** Answers 405 to the other methods of a path. */
export function failOtherMethods(
  app: FastifyInstance,
  url: string,
  allowed: readonly string[],
  { config }: Pick<RouteOptions, 'config'> = {},
): void {
  app.route({
    method: app.supportedMethods.filter(method => !allowed.includes(method)),
    url,
    schema: hidden,
    config: { ...config, allowedMethods: allowed.join(', ') },
    handler: () => {
      throw new Error('`checkRequests` must answer this method')
    },
  })
}

/** Hidden from the host's @fastify/swagger: OpenAPI has no place for most of these methods. */
const hidden: object = { hide: true }
