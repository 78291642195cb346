export type { Int64, Page, Plant, PlantId, Version } from '@plant-store/domain'
export { DomainError, isDomainError, isVersion } from '@plant-store/domain'
export type { ManyCreated, PlantFault } from './create-many.ts'
export type {
  CallOptions,
  ChangeOptions,
  EntityClient,
  EntityOptions,
  Input,
  ListQuery,
  Versioned,
} from './entity.ts'
export { createEntityClient } from './entity-client.ts'
export { errorNumbers, NoAnswerError, RefusedError } from './errors.ts'
export {
  createPlantClient,
  type PlantClient,
  type PlantInput,
  type PlantListQuery,
} from './plant-client.ts'
export type { ClientOptions } from './request.ts'
