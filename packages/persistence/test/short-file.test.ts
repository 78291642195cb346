import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openArchive, openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'

for (const content of ['x', 'xy', 'SQLite format 3\0', 'x'.repeat(99)]) {
  test(`a file of ${content.length} bytes that are no store is refused, and left as it was`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
    try {
      const path = join(folder, 'plants.db')
      writeFileSync(path, content)
      const refusal = /plants\.db can not be opened: /
      await expect(openStorage({ url: `file:${path}` })).rejects.toThrow(refusal)
      await expect(openArchive(`file:${path}`)).rejects.toThrow(refusal)
      expect(readFileSync(path, 'latin1')).toBe(content)
      expect(readdirSync(folder)).toEqual(['plants.db'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
}
