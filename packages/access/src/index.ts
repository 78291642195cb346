export {
  AccessError,
  type AccessErrorCode,
  type Credentials,
  createGate,
  type Gate,
  type GateOptions,
  type Holder,
  isAccessError,
  requireScope,
} from './gate.ts'
export {
  type AccessToken,
  hashToken,
  isBearerToken,
  isTokenName,
  mintToken,
  type Scope,
  scopes,
  type TokenHash,
  type TokenRepository,
} from './token.ts'
