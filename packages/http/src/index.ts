export { type PlantRoutesOptions, plantRoutes } from './plants.ts'
export { createServer, type ServerLimits, type ServerOptions } from './server.ts'
