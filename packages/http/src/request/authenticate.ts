import { isNativeError } from 'node:util/types'
import { type Gate, type Holder, isAccessError, type Scope } from '@plant-store/access'
import type { FastifyRequest } from 'fastify'
import { refusal, tokenName } from '../answered-request.ts'
import { RequestError } from '../errors/failures.ts'
import type { Throttle } from './wrong-tokens.ts'

/** Passes a request that the gate has admitted, and calls `done` with a failure in every other case. */
export type Authenticate = (request: FastifyRequest, scope: Scope, done: (failure?: Error) => void) => void

export function createAuthentication(gate: Gate, throttle: Throttle = () => 0): Authenticate {
  return (request, scope, done) => {
    const admit = (name: string) => {
      request[tokenName] = name
      done()
    }
    const fail = (thrown: unknown) => done(failureOf(thrown, request, throttle))
    let name: string
    try {
      const { headers } = request
      const admission = gate({ token: bearerToken(headers.authorization), headers }, scope)
      if (isThenable(admission)) return void (async () => nameOf(await admission))().then(admit, fail)
      name = nameOf(admission)
    } catch (thrown) {
      return fail(thrown)
    }
    admit(name)
  }
}

/** Checks the method: promises of other libraries and realms are not instances of this `Promise`. */
function isThenable(admission: Holder | PromiseLike<Holder>): admission is PromiseLike<Holder> {
  return typeof (admission as Partial<PromiseLike<Holder>> | null | undefined)?.then === 'function'
}

/**
 * Returns the name of a holder, and throws for anything else, as a gate may not be TypeScript. An error has a name too.
 */
function nameOf(holder: unknown): string {
  if (typeof holder === 'object' && holder !== null && !isNativeError(holder)) {
    const { name } = holder as Partial<Holder>
    if (typeof name === 'string' && name !== '') return name
  }
  throw new TypeError('the gate returned no holder with a name')
}

/** Returns a truthy value: Fastify takes a falsy one for success, and the request would pass. */
function failureOf(thrown: unknown, request: FastifyRequest, throttle: Throttle): Error {
  if (!thrown) return new Error(`the gate failed with ${thrown}`)
  if (!isAccessError(thrown)) return thrown as Error
  request[refusal] = thrown
  const seconds = thrown.code === 'invalid-token' ? throttle(request.ip) : 0
  if (seconds === 0) return thrown
  const message = 'too many wrong access tokens from this address: try again later'
  return new RequestError('too-many-wrong-tokens', message, { 'retry-after': `${seconds}` })
}

/**
 * Returns the token (RFC 6750, 2.1), with the scheme in any case (RFC 9110, 11.1). Searching for the end of the spaces,
 * as `/^bearer +(.*?) *$/` does, would take quadratic time.
 */
function bearerToken(authorization = ''): string | undefined {
  return /^bearer +([^ ].*)/i.exec(authorization)?.[1]
}
