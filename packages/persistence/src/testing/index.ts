export { type ArchivedPlants, type PlantArchiveCase, plantArchiveContract } from './archive-contract.ts'
