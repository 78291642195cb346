export { type PlantRepositoryCase, plantRepositoryContract } from './contract.ts'
export { createMemoryPlantRepository } from './memory.ts'
export { edgeIds, fullPlant, longPlant, plant, texts } from './samples.ts'
