import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type Plant, type PlantId, parsePlant, parsePlantId } from '@plant-store/domain'
import type { Entity } from '@plant-store/engine'
import { temporaryFolder } from '@plant-store/harness/vitest'
import {
  backUpStore,
  entities,
  inspectStore,
  openReader,
  openSalvage,
  restoreStore,
} from '@plant-store/persistence'

export { temporaryFolder }

/** The newest version of the schema. */
export const schemaVersion = Math.max(
  ...Object.values<Entity>(entities).flatMap(({ migrations }) =>
    Object.keys(migrations).map(Number),
  ),
)

export const plant = (id: number | bigint, name = `plant ${id}`, tag?: string): Plant =>
  parsePlant({ id: BigInt(id), name, tag })
export const plantId = (id: number | bigint): PlantId => parsePlantId(BigInt(id))

/** The files in a folder, each with the hash of its content. */
export function snapshot(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map(name => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  )
}

/**
 * Returns the files of a folder that this process has open. It returns none where the
 * system does not list them.
 */
export function openFilesIn(folder: string): string[] {
  const list = '/proc/self/fd'
  return (existsSync(list) ? readdirSync(list) : []).flatMap(each => {
    try {
      const file = readlinkSync(join(list, each))
      return file.startsWith(folder) ? [file] : []
    } catch {
      // Reading the list opens a file, which is closed by now.
      return []
    }
  })
}

interface Look {
  readonly name: string
  /** Resolves to the number of plants in the store. */
  readonly look: (url: string) => Promise<number>
}

/** All that reads a store on a file without changing it. */
export const looks: readonly Look[] = [
  {
    name: 'inspectStore',
    look: async url => (await inspectStore(url)).counts.plants,
  },
  {
    name: 'openReader',
    async look(url) {
      await using reader = await openReader(url)
      return (await reader.counts()).plants
    },
  },
  {
    name: 'openSalvage',
    async look(url) {
      await using salvage = await openSalvage(url)
      let plants = 0
      for await (const page of salvage.of('plants').all()) {
        plants += page.length
      }
      return plants
    },
  },
  {
    name: 'backUpStore',
    async look(url) {
      const report = await backUpStore(url, join(temporaryFolder(), 'backup'))
      return report.counts.plants
    },
  },
  {
    name: 'restoreStore',
    async look(url) {
      const other = `file:${temporaryFolder()}/other.db`
      const report = await restoreStore(other, url.slice('file:'.length))
      return report.counts.plants
    },
  },
]
