import {
  isSame,
  type PlantId,
  type PlantRepository,
  type Version,
  type VersionedPlant,
} from '@plant-store/domain'
import { type Break, type Broken, later, withoutTag } from './break.ts'

async function versionIn(
  right: PlantRepository,
  id: PlantId,
): Promise<Version | undefined> {
  return (await right.find(id))?.version
}

/** Names the states of plants by something else. */
function versioning(name: (stored: VersionedPlant) => string): Break {
  return right => {
    const nameOf = async (id: PlantId) => {
      const stored = await right.find(id)
      return stored && name(stored)
    }
    return {
      async find(id) {
        const stored = await right.find(id)
        return stored && { ...stored, version: name(stored) }
      },
      async removeIf(id, expected) {
        const isExpected = (await nameOf(id)) === expected
        const version = await versionIn(right, id)
        return right.removeIf(id, isExpected && version ? version : expected)
      },
    }
  }
}

/** Takes a version for the expected one by another comparison. */
function comparing(isEqual: (version: string, expected: string) => boolean): Break {
  return right => {
    const expectedIn = async (id: PlantId, expected: Version) => {
      const version = await versionIn(right, id)
      return version !== undefined && isEqual(version, expected) ? version : expected
    }
    return {
      saveIf: async (plant, expected) =>
        right.saveIf(plant, expected && (await expectedIn(plant.id, expected))),
      removeIf: async (id, expected) =>
        right.removeIf(id, await expectedIn(id, expected)),
    }
  }
}

/** Repositories whose versions, or changes that depend on them, are wrong. */
export const brokenConditions: Broken = {
  'names a state by its content': versioning(({ plant: { id, name, tag } }) =>
    `${id}-${name}-${tag}`.slice(0, 64),
  ),
  'returns versions that no entity tag may hold': versioning(
    ({ version }) => `"${version}"`,
  ),
  'compares versions by how they begin': comparing((version, expected) =>
    expected.startsWith(version),
  ),
  'compares versions in any case': comparing(
    (version, expected) => version.toLowerCase() === expected.toLowerCase(),
  ),
  'removes whatever version is expected': right => ({
    removeIf: id => right.remove(id),
  }),
  'looks at the version first and removes later': right => ({
    async removeIf(id, expected) {
      if ((await versionIn(right, id)) !== expected) {
        return false
      }
      await later()
      await right.remove(id)
      return true
    },
  }),
  'resolves to another version than it keeps': right => ({
    save: async plant => `${await right.save(plant)}0`,
  }),
  'resolves a conditional save to the version before': right => ({
    async saveIf(plant, expected) {
      const version = await right.saveIf(plant, expected)
      return version && (expected ?? 'a')
    },
  }),
  'forgets the tag on a conditional save': right => ({
    saveIf: (plant, expected) => right.saveIf(withoutTag(plant), expected),
  }),
  'keeps the version of a plant that is saved as it was': right => ({
    async save(plant) {
      const stored = await right.find(plant.id)
      const isStored = stored !== undefined && isSame(stored.plant, plant)
      return isStored ? stored.version : right.save(plant)
    },
  }),
  'saves whatever version is expected': right => ({
    saveIf: plant => right.save(plant),
  }),
  'creates where a version is expected': right => ({
    async saveIf(plant, expected) {
      const stored = await right.find(plant.id)
      return stored === undefined ? right.save(plant) : right.saveIf(plant, expected)
    },
  }),
  'replaces where no plant is expected': right => ({
    async saveIf(plant, expected) {
      return expected === undefined ? right.save(plant) : right.saveIf(plant, expected)
    },
  }),
  'looks at the version first and saves later': right => ({
    async saveIf(plant, expected) {
      const isExpected = (await versionIn(right, plant.id)) === expected
      await later()
      return isExpected ? right.save(plant) : undefined
    },
  }),
}
