export { DomainError, type DomainErrorCode, type Fault, isDomainError } from './errors.ts'
export { isSamePlant, type Plant, type PlantText, parsePlant, textBytes } from './plant.ts'
export { type PlantId, parsePlantId, plantIdMax, plantIdMin } from './plant-id.ts'
export type { PlantPageQuery, PlantRepository } from './plant-repository.ts'
export {
  createPlantStore,
  type PlantPage,
  type PlantStore,
  pageLimitDefault,
  pageLimitMax,
  parsePlantPageQuery,
} from './plant-store.ts'
