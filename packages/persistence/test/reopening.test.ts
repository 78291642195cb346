import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parsePlant } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'

test('opens a store again, with what is in it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-reopening-'))
  const url = `file:${join(folder, 'plants.db')}`
  const plant = parsePlant({ id: 1n, name: 'Monstera' })
  try {
    await using first = await openStorage({ url })
    await first.plants.insert(plant)
    await using second = await openStorage({ url })
    expect(await second.plants.find(plant.id)).toEqual(plant)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
