export { type AnnouncingStore, type OutboxCase, outboxContract } from './contract.ts'
export { createMemoryStore, type MemoryStore } from './memory.ts'
