export {
  DomainError,
  isDomainError,
  isPlantVersion,
  type Plant,
  type PlantId,
  type PlantPage,
  type PlantVersion,
  type VersionedPlant,
} from '@plant-store/domain'
export {
  type CallOptions,
  createPlantClient,
  type PlantClient,
  type PlantClientOptions,
  type PlantInput,
  type PlantListQuery,
  type RemoveOptions,
  type ReplaceOptions,
} from './client.ts'
export type { CreatedCounts, CreateManyOptions, ManyCreated, PlantFault } from './create-many.ts'
export { errorNumbers } from './error-numbers.ts'
export { NoAnswerError, type NoAnswerReason, RefusedError } from './errors.ts'
