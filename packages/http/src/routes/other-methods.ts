import { METHODS } from 'node:http'
import { isAccessError } from '@plant-store/access'
import type { FastifyInstance } from 'fastify'
import { answerFailure } from '../answer/answer.ts'
import { RequestError } from '../answer/failures.ts'

/** Makes the router know every method that Node can parse, so that a path can refuse the ones it hasn't. */
export function knowAllMethods(app: FastifyInstance): void {
  for (const method of METHODS) {
    if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) app.addHttpMethod(method)
  }
}

/**
 * Answers 405 with Allow (RFC 9110, 15.5.6) to the other methods at a path, without looking at their bodies, and to
 * every good token: no scope would help.
 */
export function refuseOtherMethods(app: FastifyInstance, url: string, allowed: readonly string[]): void {
  const allow = allowed.join(', ')
  const refusal = () =>
    new RequestError('method-not-allowed', `the methods at this path are ${allow}`, { allow })
  const refuse = async () => {
    throw refusal()
  }
  app.route({
    method: app.supportedMethods.filter(method => !allowed.includes(method)),
    url,
    schema: hidden,
    onRequest: refuse,
    handler: refuse,
    errorHandler: (error, request, reply) =>
      answerFailure(lacksScope(error) ? refusal() : error, request, reply),
  })
}

/** To @fastify/swagger, where the service around has it: OpenAPI has no place for most of these methods. */
const hidden: object = { hide: true }

/** Whether a token was good, but not for what its scopes are about. */
export function lacksScope(error: unknown): boolean {
  return isAccessError(error) && error.code === 'insufficient-scope'
}
