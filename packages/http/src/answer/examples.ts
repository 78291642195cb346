import { writeJsonRecord } from '@plant-store/json'

const plant = { name: 'Monstera deliciosa', tag: 'climber' }
const newPlant = { id: 42n, ...plant }

/** Examples for the interface description, by the title of the schema. */
export const examples: Readonly<Record<string, unknown>> = {
  Plant: plant,
  NewPlant: newPlant,
  StoredPlant: newPlant,
  PlantId: newPlant.id,
  PlantLines: `${writeJsonRecord(newPlant)}\n${writeJsonRecord({ id: 43n, name: 'Ginkgo biloba' })}\n`,
  CreatedPlants: {
    created: 1,
    existing: 0,
    refused: 1,
    faults: [{ line: 2, error: 40003, message: 'id 43 is already taken' }],
  },
  Status: { status: 'ok' },
}
