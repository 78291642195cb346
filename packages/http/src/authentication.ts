import type { Gate, Holder, Scope } from '@plant-store/access'
import type { FastifyReply, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyRequest {
    /** The name of the holder whose token admitted the request; empty as long as none did. */
    tokenName: string
  }
}

/** @returns a hook that lets a request pass once the gate has admitted it, before anything of its body is read */
export function createAuthentication(
  gate: Gate,
  scopeOf: (method: string) => Scope = plantScope,
): (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void {
  return (request, _reply, done) => {
    const admit = ({ name }: Holder) => {
      request.tokenName = name
      done()
    }
    const admission = gate(bearerToken(request.headers.authorization), scopeOf(request.method))
    if (admission instanceof Promise) admission.then(admit, done)
    else admit(admission)
  }
}

/** RFC 6750, 2.1, with the scheme in any case (RFC 9110, 11.1). Credentials of another scheme are none for us. */
function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^bearer +(.*?) *$/i.exec(authorization)?.[1]
}

function plantScope(method: string): Scope {
  return method === 'GET' || method === 'HEAD' ? 'plants:read' : 'plants:write'
}
