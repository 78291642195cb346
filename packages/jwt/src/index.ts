export { createJwtGate, type JwtGateOptions } from './jwt-gate.ts'
export type { JwtAlgorithm, JwtLimits } from './settings.ts'
export { defaultJwtLimits, jwtAlgorithms, parseJwksUrl } from './settings.ts'
