const { createMemoryPlantRepository, plantRepositoryContract } = require('@plant-store/domain/testing')

for (const { name, run } of plantRepositoryContract) test(name, () => run(createMemoryPlantRepository()))
