export {
  DomainError,
  type DomainErrorCode,
  type Fault,
  isDomainError,
  type Problems,
  refusal,
} from './errors.ts'
export {
  isSamePlant,
  type Plant,
  type PlantId,
  parsePlant,
  parsePlantId,
  plantMembers,
} from './plants/plant.ts'
export { type PlantPageQuery, parsePlantPageQuery } from './plants/query.ts'
export type { PlantRepository } from './plants/repository.ts'
export {
  type AddOptions,
  type CreateOutcome,
  createPlantStore,
  idTaken,
  type PlantPage,
  type PlantStore,
  type PlantStoreOptions,
} from './plants/store.ts'
export {
  isMet,
  isPlantVersion,
  type PlantAdded,
  type PlantCondition,
  type PlantVersion,
  type PlantVersions,
  type VersionedPlant,
} from './plants/version.ts'
export {
  type Int64,
  idProblem,
  int64Max,
  int64Min,
  int64Problem,
  isFaultless,
  isInt64,
  isRecord,
  member,
  pageLimitDefault,
  pageLimitMax,
  pageLimitProblem,
  textBytes,
  textProblem,
  type UnicodeText,
} from './values.ts'
