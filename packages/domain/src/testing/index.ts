export {
  type ItemCase,
  type ItemFilter,
  type ItemRepository,
  type ItemSamples,
  itemRepositoryContract,
} from './items.ts'
export { createMemoryItems, pageOf } from './memory.ts'
export { type PlantRepositoryCase, plantRepositoryContract } from './plants/contract.ts'
export { createMemoryPlantRepository } from './plants/memory.ts'
export { fullPlant, longPlant, plant } from './plants/samples.ts'
export { edgeIds, texts } from './samples.ts'
export { memoryUseCases } from './use-cases.ts'
