export { DomainError, type DomainErrorCode, type Fault, isDomainError } from './errors.ts'
export {
  isSamePlant,
  type Plant,
  type PlantId,
  type PlantText,
  parsePlant,
  parsePlantId,
  plantIdMax,
  plantIdMin,
  plantMembers,
  textBytes,
} from './plant.ts'
export { type PlantPageQuery, pageLimitDefault, pageLimitMax, parsePlantPageQuery } from './plant-query.ts'
export type { AddOptions, PlantRepository } from './plant-repository.ts'
export {
  type CreateOutcome,
  createPlantStore,
  idTaken,
  type PlantPage,
  type PlantStore,
} from './plant-store.ts'
export {
  isMet,
  isPlantVersion,
  type PlantAdded,
  type PlantCondition,
  type PlantVersion,
  type PlantVersions,
  type VersionedPlant,
} from './plant-version.ts'
