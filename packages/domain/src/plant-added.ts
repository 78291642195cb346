import type { Plant } from './plant.ts'
import type { PlantVersion } from './plant-version.ts'

/** A plant was stored under an id that was free: created, alone or with others, saved as a new one, or imported. */
export interface PlantAdded {
  readonly plant: Plant
  /** Of the plant as it was added. It also names this event, and no other. */
  readonly version: PlantVersion
  readonly addedAt: Date
}
