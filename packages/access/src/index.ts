export {
  AccessError,
  type AccessErrorCode,
  type Credentials,
  createGate,
  type Gate,
  type Holder,
} from './gate.ts'
export { type Scope, scopes, scopesByChoice } from './scopes.ts'
export {
  type AccessToken,
  hashToken,
  isBearerToken,
  isExpired,
  isTokenName,
  mintToken,
  type TokenHash,
  type TokenRepository,
} from './token.ts'
export { createTokenMemory } from './token-memory.ts'
