export {
  DomainError,
  type DomainErrorCode,
  type Fault,
  idTaken,
  isDomainError,
  type PlantErrorCode,
  type Problems,
  refusal,
} from './errors.ts'
export {
  type Page,
  type PageQuery,
  pageLimitDefault,
  pageLimitMax,
  pageLimitProblem,
  readPage,
  type Total,
  totalMax,
} from './page.ts'
export {
  type Plant,
  type PlantId,
  parsePlant,
  parsePlantId,
  plantMembers,
  type SavedPlant,
  type VersionedPlant,
} from './plants/plant.ts'
export {
  type PlantCount,
  type PlantListParameter,
  type PlantListQuery,
  type PlantPage,
  type PlantPageQuery,
  type PlantSearch,
  parsePlantListQuery,
  searchedTextMax,
} from './plants/query.ts'
export type { CountedPlants, PlantRepository } from './plants/repository.ts'
export {
  type CreateOutcome,
  createPlantUseCases,
  type PlantUseCases,
  type ReplaceOutcome,
} from './plants/use-cases.ts'
export {
  type Identified,
  type Int64,
  idProblem,
  int64Max,
  int64Min,
  int64Problem,
  isFaultless,
  isInt64,
  isRecord,
  isSame,
  member,
  parseId,
  textBytes,
  textProblem,
  type UnicodeText,
} from './values.ts'
export {
  type Condition,
  isMet,
  isVersion,
  type Version,
  type Versions,
} from './version.ts'
