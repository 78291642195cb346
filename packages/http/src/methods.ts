import { METHODS } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { RequestError } from './errors.ts'

/** Makes the router know every method that Node can parse, so that a path can refuse the ones it hasn't. */
export function knowAllMethods(app: FastifyInstance): void {
  for (const method of METHODS) {
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) app.addHttpMethod(method)
  }
}

/** Answers 405 with Allow (RFC 9110, 15.5.6) to the other methods at a path, without looking at their bodies. */
export function refuseOtherMethods(app: FastifyInstance, url: string, allowed: readonly string[]): void {
  const allow = allowed.join(', ')
  const refuse = async () => {
    throw new RequestError('method-not-allowed', `the methods at this path are ${allow}`, { allow })
  }
  app.route({
    method: app.supportedMethods.filter(method => !allowed.includes(method)),
    url,
    onRequest: refuse,
    handler: refuse,
  })
}
