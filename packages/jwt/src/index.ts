export { createJwtGate, type JwtGateOptions } from './jwt-gate.ts'
