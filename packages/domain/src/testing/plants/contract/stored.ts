import assert from 'node:assert/strict'
import type { Plant } from '../../../plants/plant.ts'
import type { PlantPageQuery } from '../../../plants/query.ts'
import type { PlantRepository } from '../../../plants/repository.ts'
import type { UnicodeText } from '../../../values.ts'
import type { Version } from '../../../version.ts'
import { idsOf, plantId } from '../samples.ts'

/** Returns the stored plant with this id. */
export async function storedPlant(
  repository: PlantRepository,
  id: bigint,
): Promise<Plant | undefined> {
  return (await repository.find(plantId(id)))?.plant
}

/** Returns the version of the stored plant with this id. */
export async function storedVersion(
  repository: PlantRepository,
  id: bigint,
): Promise<Version> {
  const stored = await repository.find(plantId(id))
  assert(stored, `plant ${id} is stored`)
  return stored.version
}

/** Returns all stored plants. */
export function allPlants(repository: PlantRepository): Promise<readonly Plant[]> {
  return repository.page({ limit: 2_000 })
}

/** Returns the ids on a page. */
export async function pageIds(
  repository: PlantRepository,
  query: Partial<PlantPageQuery>,
): Promise<bigint[]> {
  return idsOf(await repository.page({ limit: 100, ...query }))
}

export function tagOf(text: string): UnicodeText {
  // Every tag here is Unicode text.
  return text as UnicodeText
}

/** Returns the numbers from 0 up to the count, as ids. */
export function firstIds(count: number): bigint[] {
  return Array.from({ length: count }, (_, index) => BigInt(index))
}

/** Saves a plant, and resolves to the version that it has then. */
export async function savedVersion(
  repository: PlantRepository,
  plant: Plant,
): Promise<Version> {
  const { version } = await repository.save(plant)
  return version
}
