export { type AnnouncingStore, type OutboxCase, outboxContract } from './contract.ts'
export { createMemoryOutbox, type MemoryOutbox } from './memory.ts'
