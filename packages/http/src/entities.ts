import type { AccessErrorCode } from '@plant-store/access'
import type { DomainErrorCode } from '@plant-store/domain'
import type { FastifyInstance } from 'fastify'
import { commonFailures, type FailureRow } from './errors/error-numbers.ts'
import { createToFailure } from './errors/failures.ts'
import type { Section } from './openapi/operation.ts'
import { addRoutes, type Pipeline } from './pipeline.ts'
import type { Announcing } from './plants/announce.ts'
import { handlers } from './plants/handlers.ts'
import { plants } from './plants/operations.ts'

/** The use cases of every entity, by its name. */
export interface UseCases extends Announcing {}

/** The part of each entity in the description. */
export const sections: readonly Section[] = [plants]

/** Adds the routes of every entity. */
export function addStoreRoutes(
  app: FastifyInstance,
  useCases: UseCases,
  pipeline: Pipeline,
): void {
  addRoutes(app, plants, handlers(useCases, pipeline), pipeline)
}

/** The published error numbers. A code without one does not compile. */
export const failures = { ...commonFailures, ...plants.failures } satisfies Record<
  DomainErrorCode | AccessErrorCode,
  FailureRow
>

export const toFailure = createToFailure(failures)
