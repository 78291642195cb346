import type { PlantId } from '@plant-store/domain'
import type { RequestTrace } from './request-log.ts'

/** What is known of a request for its log line. Symbols avoid the names of the host's properties. */

export const trace = Symbol('trace')
export const tokenName = Symbol('tokenName')
export const plantId = Symbol('plantId')
export const errorNumber = Symbol('errorNumber')
export const lineCounts = Symbol('lineCounts')

export interface LineCounts {
  readonly created: number
  readonly existing: number
  readonly refused: number
}

declare module 'fastify' {
  interface FastifyRequest {
    [trace]?: RequestTrace | undefined
    /** The name of the admitted holder. */
    [tokenName]?: string
    [plantId]?: PlantId
    [errorNumber]?: number
    /** Of a batch. */
    [lineCounts]?: LineCounts
  }
}
