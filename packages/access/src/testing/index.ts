export { type TokenRepositoryCase, tokenRepositoryContract } from './contract.ts'
export { createMemoryTokenRepository } from './memory.ts'
