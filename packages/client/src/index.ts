export {
  type CallOptions,
  createPlantClient,
  type PlantClient,
  type PlantClientOptions,
  type PlantInput,
  type PlantListQuery,
} from './client.ts'
export { NoAnswerError, type NoAnswerReason, RefusedError } from './errors.ts'
