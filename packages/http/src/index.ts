export { failures } from './answer/failures.ts'
export { type PlantRoutesOptions, plantRoutes } from './plugin.ts'
