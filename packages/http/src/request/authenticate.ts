import {
  AccessError,
  type Gate,
  type Holder,
  isBearerToken,
  type Scope,
} from '@plant-store/access'
import { isDomainError } from '@plant-store/domain'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { factsOf } from './facts.ts'

/** The scope that a token needs. Every valid token has `any`. `null` needs no token. */
export type RouteScope = Scope | 'any' | null

declare module 'fastify' {
  interface FastifyContextConfig {
    scope?: RouteScope
  }
}

/** The part of a request that authentication reads and notes facts in. */
export type AuthenticatedRequest = Pick<FastifyRequest, 'facts' | 'headers'>

/**
 * Asks the gate for the holder of a token with a scope, or with `any`.
 *
 * @throws Error in every other case, or rejects with it
 */
export type Authenticate = (
  request: AuthenticatedRequest,
  scope: Scope | 'any',
) => void | Promise<void>

/**
 * Refuses requests without a token that has the scope of their route.
 *
 * @throws Error while a route is added that does not declare its scope, because it must
 *   not be open
 */
export function checkAccess(app: FastifyInstance, authenticate: Authenticate): void {
  app.addHook('onRoute', ({ url, config }) => {
    if (config?.scope === undefined) {
      throw new Error(`the route ${url} does not declare its scope`)
    }
  })
  app.addHook('onRequest', (request, _reply, done) => {
    const scope = scopeOf(request)
    if (scope === null) {
      done()
      return
    }
    const admission = authenticate(request, scope)
    if (admission instanceof Promise) {
      admission.then(() => done(), done)
      return
    }
    done()
  })
}

function scopeOf(request: FastifyRequest): RouteScope {
  if (request.is404) {
    return 'any'
  }
  // Fastify makes an object of all options each time.
  const { config, url } = request.routeOptions
  factsOf(request).route = url
  // `checkAccess` refuses to add a route without one.
  return config.scope as RouteScope
}

export function createAuthentication(gate: Gate): Authenticate {
  return (request, scope) => {
    const { headers } = request
    // A gate judges one scope. If any will do, `rethrowUnlessAnyScope` admits a token
    // that lacks this one.
    const judgedScope = scope === 'any' ? 'plants:read' : scope
    try {
      const token = bearerToken(headers.authorization)
      const admission = gate({ token, headers }, judgedScope)
      if (admission instanceof Promise) {
        return admission
          .then(holder => noteHolder(request, holder))
          .catch(thrown => rethrowUnlessAnyScope(thrown, request, scope))
      }
      noteHolder(request, admission)
    } catch (thrown) {
      rethrowUnlessAnyScope(thrown, request, scope)
    }
  }
}

function noteHolder(request: AuthenticatedRequest, holder: Holder) {
  factsOf(request).holderName = holder.name
}

/**
 * @throws Error always, unless the token only lacks the scope and any scope will do. It
 *   is an error, because Fastify takes a falsy value for success.
 */
function rethrowUnlessAnyScope(
  thrown: unknown,
  request: AuthenticatedRequest,
  scope: Scope | 'any',
) {
  if (isDomainError(thrown)) {
    // The store cannot be asked. Nothing was changed, which its own error would not say.
    const message = 'access cannot be checked at the moment: try again later'
    throw new AccessError('access-unavailable', message)
  }
  if (!(thrown instanceof AccessError)) {
    throw thrown || new Error(`the gate failed with ${thrown}`)
  }
  const error = withForm(thrown, request.headers.authorization)
  factsOf(request).accessError = error
  if (scope === 'any' && error.code === 'insufficient-scope') {
    return
  }
  throw error
}

const expectedForm =
  'the header field Authorization must be "Bearer", a space and the access token, with "=" only at its end'

/** Returns the error, which names the form of the header field if that is at fault. */
function withForm(error: AccessError, authorization: string | undefined) {
  const { code, scope, holder } = error
  const isAboutToken = code === 'no-token' || code === 'invalid-token'
  if (!isAboutToken || authorization === undefined) {
    return error
  }
  if (isBearerToken(bearerToken(authorization) ?? '')) {
    return error
  }
  return new AccessError(code, expectedForm, scope, holder)
}

/**
 * Returns the token (RFC 6750, 2.1), with the scheme in any case (RFC 9110, 11.1).
 * Searching for the end of the spaces, as `/^bearer +(.*?) *$/` does, would take
 * quadratic time.
 */
function bearerToken(authorization = '') {
  const token = authorization.replace(/^bearer +(?=[^ ])/i, '')
  return token === authorization ? undefined : token
}
