import {
  AccessError,
  type Gate,
  type Holder,
  isBearerToken,
  type Scope,
} from '@plant-store/access'
import type { FastifyRequest } from 'fastify'
import { notesOf } from '../request-context.ts'

/** Returns `undefined` for a request that the gate has admitted, and a failure in every other case. */
export type Authenticate = (
  request: FastifyRequest,
  scope: Scope,
) => Refusal | Promise<Refusal>
type Refusal = Error | undefined

export function createAuthentication(gate: Gate): Authenticate {
  return (request, scope) => {
    const { headers } = request
    try {
      const admission = gate(
        { token: bearerToken(headers.authorization), headers },
        scope,
      )
      if (!(admission instanceof Promise)) {
        return noteHolder(request, admission)
      }
      return admission
        .then(holder => noteHolder(request, holder))
        .catch(thrown => failureOf(thrown, request))
    } catch (thrown) {
      return failureOf(thrown, request)
    }
  }
}

function noteHolder(request: FastifyRequest, holder: Holder): undefined {
  notesOf(request).holderName = nameOf(holder)
}

/** Fails closed, as a gate may break the promise of its type. Functions and errors have names too. */
function nameOf(holder: Holder | undefined): string {
  const isHolder = typeof holder === 'object' && !(holder instanceof Error)
  const name = isHolder ? holder?.name : undefined
  if (typeof name !== 'string' || name === '') {
    throw new TypeError('the gate returned no holder with a name')
  }
  return name
}

/** Returns an error: Fastify takes a falsy value for success, and the request would pass. */
function failureOf(thrown: unknown, request: FastifyRequest): Error {
  if (!(thrown instanceof Error)) {
    return new Error(`the gate failed with ${thrown}`)
  }
  if (!(thrown instanceof AccessError)) {
    return thrown
  }
  const refusal = withForm(thrown, request.headers.authorization)
  notesOf(request).refusal = refusal
  return refusal
}

const expectedForm =
  'the header field Authorization must be "Bearer", a space and the access token'

/** Returns the refusal, which names the form of the header field if that is at fault. */
function withForm(refusal: AccessError, authorization: string | undefined): AccessError {
  const { code, scope, holder } = refusal
  const isAboutToken = code === 'no-token' || code === 'invalid-token'
  if (!isAboutToken || authorization === undefined) {
    return refusal
  }
  const token = bearerToken(authorization)
  const isWellFormed = token !== undefined && isBearerToken(token)
  return isWellFormed ? refusal : new AccessError(code, expectedForm, scope, holder)
}

/**
 * Returns the token (RFC 6750, 2.1), with the scheme in any case (RFC 9110, 11.1). Searching for the end of the spaces,
 * as `/^bearer +(.*?) *$/` does, would take quadratic time.
 */
function bearerToken(authorization = ''): string | undefined {
  const token = authorization.replace(/^bearer +(?=[^ ])/i, '')
  return token === authorization ? undefined : token
}
