export { answerFailure } from './answer/answer.ts'
export { type Failure, failures, toFailure } from './answer/failures.ts'
export { tokenName } from './context.ts'
export {
  describeInterface,
  type InterfaceDescription,
  plantSchemas as schemas,
} from './interface/description.ts'
export { type PlantRoutesOptions, plantRoutes } from './plugin.ts'
export { createThrottle, type Throttle } from './request/authenticate.ts'
