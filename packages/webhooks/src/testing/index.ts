export { createMemoryOutbox, type MemoryOutbox } from './memory.ts'
