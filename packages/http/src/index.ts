export { drain } from './drain.ts'
export { type AnsweredRequest, metricsMediaType } from './metrics.ts'
export { type PlantRoutesOptions, plantRoutes } from './plants.ts'
export { createServer, type ServerLimits, type ServerOptions } from './server.ts'
