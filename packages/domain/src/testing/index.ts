export { type PlantRepositoryCase, plantRepositoryContract } from './contract.ts'
export { createMemoryPlantRepository } from './memory.ts'
