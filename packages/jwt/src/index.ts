export { createJwtGate, type JwtGateOptions } from './jwt-gate.ts'
export type { KeySetState } from './key-set.ts'
export { defaultJwtLimits, type JwtLimits } from './limits.ts'
export { type JwtAlgorithm, jwtAlgorithms, parseJwksUrl } from './settings.ts'
