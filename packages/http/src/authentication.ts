import { type Gate, type Holder, isAccessError, type Scope } from '@plant-store/access'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RequestError } from './errors.ts'
import type { Throttle } from './throttle.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The name of the holder whose token admitted the request; empty as long as none did. */
    tokenName: string
  }
}

/** @returns a hook that lets a request pass once the gate has admitted it, before anything of its body is read */
export function createAuthentication(
  gate: Gate,
  throttle?: Throttle,
  scopeOf: (method: string) => Scope = plantScope,
): (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void {
  return (request, _reply, done) => {
    const admit = ({ name }: Holder) => {
      request.tokenName = name
      done()
    }
    const token = bearerToken(request.headers.authorization)
    // Before the gate: an answer that depends on the token would tell a guess from a hit.
    if (throttle !== undefined && token !== undefined) turnAway(throttle, request.ip, token)
    const admission = gate(token, scopeOf(request.method))
    if (!(admission instanceof Promise)) return admit(admission)
    // Only what had to be looked up can be wrong, or new.
    admission.then(
      found => {
        throttle?.succeeded(token as string)
        admit(found)
      },
      (error: Error) => {
        if (isAccessError(error) && error.code === 'invalid-token') throttle?.failed(request.ip)
        done(error)
      },
    )
  }
}

/** @throws RequestError `too-many-wrong-tokens` */
function turnAway(throttle: Throttle, address: string, token: string): void {
  const seconds = throttle.secondsToWait(address, token)
  if (seconds === 0) return
  throw new RequestError('too-many-wrong-tokens', 'too many wrong access tokens came from this address', {
    'retry-after': `${seconds}`,
  })
}

/** RFC 6750, 2.1, with the scheme in any case (RFC 9110, 11.1). Credentials of another scheme are none for us. */
function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^bearer +(.*?) *$/i.exec(authorization)?.[1]
}

function plantScope(method: string): Scope {
  return method === 'GET' || method === 'HEAD' ? 'plants:read' : 'plants:write'
}
