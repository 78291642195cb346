export { type PlantRepositoryCase, plantRepositoryContract } from './contract.ts'
export {
  type ItemCase,
  type ItemFilter,
  type ItemRepository,
  type ItemSamples,
  itemRepositoryContract,
  pageOf,
} from './items.ts'
export { createMemoryPlantRepository } from './memory.ts'
export { edgeIds, fullPlant, longPlant, plant, texts } from './samples.ts'
