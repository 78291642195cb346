import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Plant, type PlantId, parsePlant, parsePlantId } from '@plant-store/domain'
import { onTestFinished } from 'vitest'

export const plant = (id: number | bigint, name = `plant ${id}`, tag?: string): Plant =>
  parsePlant({ id: BigInt(id), name, tag })
export const plantId = (id: number | bigint): PlantId => parsePlantId(BigInt(id))

/** A folder of its own for a test, gone with it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

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
