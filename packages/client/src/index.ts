export type {
  DomainErrorCode,
  Fault,
  Identified,
  Int64,
  Page,
  Plant,
  PlantId,
  Total,
  UnicodeText,
  Version,
} from '@plant-store/domain'
export { DomainError, isDomainError, isVersion } from '@plant-store/domain'
export type { ManyCreated, PlantFault } from './create-many.ts'
export {
  type CallOptions,
  type ChangeOptions,
  createEntityClient,
  type EntityClient,
  type EntityOptions,
  type Input,
  type ListQuery,
  type Replaced,
  type Versioned,
} from './entity-client.ts'
export { errorNumbers, NoAnswerError, RefusedError } from './errors.ts'
export type {
  AnswerHeaders,
  ClientOptions,
  Fetch,
  FetchedAnswer,
  FetchInit,
} from './options.ts'
export {
  createPlantClient,
  type PlantClient,
  type PlantInput,
  type PlantListQuery,
} from './plant-client.ts'
