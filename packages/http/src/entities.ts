import type { AccessErrorCode } from '@plant-store/access'
import type { DomainErrorCode } from '@plant-store/domain'
import { createAnswerFailure } from './answer/answer.ts'
import { commonFailures, type FailureRow } from './errors/error-numbers.ts'
import { createToFailure } from './errors/failures.ts'
import { FailureBody } from './openapi/schemas.ts'
import type { Entity } from './pipeline.ts'
import { plants } from './plants/plants.ts'

export const entities = { plants } satisfies Record<string, Entity>

type Entities = typeof entities

/** The use cases of every entity, by its name. */
export type UseCases = { readonly [Name in keyof Entities]: Parameters<Entities[Name]['handlers']>[0] }

/** The published error numbers. A code without one does not compile. */
export const failures = { ...commonFailures, ...plants.failures } satisfies Record<
  DomainErrorCode | AccessErrorCode,
  FailureRow
>

export const schemas = { FailureBody, ...plants.schemas }

export const toFailure = createToFailure(failures)
export const answerFailure = createAnswerFailure(toFailure)
