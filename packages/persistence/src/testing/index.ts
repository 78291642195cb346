export { schemaVersion } from '../migrations.ts'
