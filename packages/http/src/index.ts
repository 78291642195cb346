export { answerFailure } from './answer/answer.ts'
export { type Failure, toFailure } from './answer/failures.ts'
export { tokenName } from './answered-request.ts'
export {
  describeInterface,
  type InterfaceDescription,
  plantSchemas as schemas,
} from './interface/description.ts'
export { failures } from './interface/error-numbers.ts'
export { type PlantRoutesOptions, plantRoutes } from './plugin.ts'
export { createThrottle, type Throttle } from './request/wrong-tokens.ts'
