export { type ArchivedPlants, type PlantArchiveCase, plantArchiveContract } from './archive-contract.ts'
export { type PlantRepositoryCase, plantRepositoryContract } from './contract.ts'
export { createMemoryPlantArchive, createMemoryPlantRepository } from './memory.ts'
export { fullPlant } from './samples.ts'
