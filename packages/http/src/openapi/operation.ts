import type { Scope } from '@plant-store/access'
import type { TObject } from 'typebox'
import type { FailureRows } from '../errors/error-numbers.ts'

/** A route with its input and output, from which the interface description and the serializers are made. */
export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  /** The scope that a token needs. `null` if no token is needed. */
  readonly scope: Scope | null
  readonly summary: string
  readonly description?: string
  readonly params?: TObject
  readonly querystring?: TObject
  /** Set if unknown query parameters are ignored: monitors add some to what they request. */
  readonly ignoresQuery?: true
  readonly headers?: TObject
  /** JSON, or of the one media type in `content`, which the handler reads as it arrives. */
  readonly body?: Described
  /** By status. */
  readonly response: Readonly<Record<number, Described>>
  readonly failureStatuses: readonly number[]
  /** Of failures that do not say what each of their numbers means. */
  readonly failureDescriptions?: Readonly<Record<number, string>>
}

export type Operations = Readonly<Record<string, Operation>>

/** One schema, or one for each media type, with a description. */
export interface Described {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string }>>
  readonly content?: Readonly<Record<string, MediaType>>
  readonly examples?: object
  readonly title?: string
  readonly type?: string
}

export interface MediaType {
  readonly schema: object
  readonly example?: unknown
  readonly examples?: object
}

/** The part of the interface description about one entity, or about the service. */
export interface Section {
  readonly tag: { readonly name: string; readonly description: string }
  readonly operations: Operations
  readonly schemas: Readonly<Record<string, { readonly title: string }>>
  /** Absent if it is no entity. */
  readonly failures?: FailureRows
  /** The requests to webhooks, as OpenAPI describes them. */
  readonly webhooks?: Readonly<Record<string, object>>
}

/** The failures of every operation. Undescribed paths and methods also answer 404 and 405. */
export const aroundRequest = [400, 401, 403, 408, 417, 431, 500, 503] as const
export const aroundBody = [413, 415] as const

export const header = (name: string, description: string) => ({
  [name]: { type: 'string', description },
})
