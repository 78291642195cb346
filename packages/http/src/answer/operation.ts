import type { FastifySchema } from 'fastify'
import type { TObject } from 'typebox'
import { failures } from './failures.ts'
import { FailureBody } from './schemas.ts'

/** What a route takes and returns, once: the interface description and the serializers are made of it. */
export interface Operation extends FastifySchema {
  readonly operationId: string
  readonly tags: readonly ('plants' | 'service')[]
  readonly summary: string
  readonly description?: string
  /** Empty for those that are open to everybody. */
  readonly security?: readonly []
  readonly params?: TObject
  readonly querystring?: TObject
  readonly body?: Described
  readonly response: Readonly<Record<string, Described>>
}

/** A schema, or several by media type, and what is said about it at one place; as @fastify/swagger takes it. */
export interface Described {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string }>>
  readonly content?: Readonly<Record<string, { readonly schema: object }>>
  readonly title?: string
  readonly type?: string
}

/** Returns the operation as Fastify takes it, which knows only what it validates and serializes. */
export const operation = (declared: Operation): FastifySchema => declared

export const about = <Schema extends object>(description: string, schema: Schema) => ({
  ...schema,
  description,
})

const statuses = new Set(Object.values(failures).map(({ number }) => Math.floor(number / 100)))

/** The response of each status of a failure. */
export const failureResponses: Readonly<Record<string, Described>> = Object.fromEntries(
  [...statuses].map(status => {
    const meanings = Object.values(failures)
      .filter(({ number }) => Math.floor(number / 100) === status)
      .map(({ number, meaning }) => `${number}: ${meaning}`)
    const headers = headersOf(status)
    return [status, { ...about(meanings.join('. '), FailureBody), ...(headers && { headers }) }]
  }),
)

function headersOf(status: number): Described['headers'] {
  const header = (description: string) => ({ type: 'string', description })
  if (status === 401 || status === 403)
    return { 'WWW-Authenticate': header('What is wrong with the credentials (RFC 6750, 3)') }
  if (status === 405) return { Allow: header('The methods at this path') }
  if (status === 429 || status === 503)
    return { 'Retry-After': header('Seconds to wait before trying again') }
  return undefined
}

export const failing = (...statuses: readonly number[]) =>
  Object.fromEntries(statuses.map(status => [status, failureResponses[status] as Described]))

/** Any request to an operation can meet these; 404 and 405 of paths and methods that are not described stand apart. */
export const aroundRequest = [400, 401, 403, 408, 417, 429, 431, 500, 503]
export const aroundBody = [413, 415]
