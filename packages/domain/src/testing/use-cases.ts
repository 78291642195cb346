import { createPlantUseCases } from '../plants/use-cases.ts'
import { createMemoryPlantRepository } from './plants/memory.ts'

/** Returns the use cases of every entity over repositories in memory, by its name. */
export const memoryUseCases = () => ({
  plants: createPlantUseCases({ plants: createMemoryPlantRepository() }),
})
