export { createJwtGate, type JwtGateOptions } from './jwt-gate.ts'
export type { KeySetState } from './key-set.ts'
export {
  defaultJwtLimits,
  type JwtAlgorithm,
  type JwtLimits,
  jwtAlgorithms,
  parseJwksUrl,
} from './settings.ts'
