export { schemaVersion } from '../migrations.ts'
export { type ArchivedPlants, type PlantArchiveCase, plantArchiveContract } from './archive-contract.ts'
