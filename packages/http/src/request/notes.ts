import type { PlantId } from '@plant-store/domain'
import type { RequestTrace } from './request-log.ts'

/**
 * What the log will say of a request, as it becomes known. Under symbols: a service around may have properties of these
 * names.
 */

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
    /** The name of the holder that the gate admitted; empty or `undefined` before. */
    [tokenName]?: string
    [plantId]?: PlantId
    [errorNumber]?: number
    /** Of a batch. */
    [lineCounts]?: LineCounts
  }
}
