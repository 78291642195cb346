import { spawnSync } from 'node:child_process'
import { needs } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { importAndExport } from '../src/parts/import.ts'

const hasShell = spawnSync('sqlite3', ['--version']).error === undefined

test('import and export are measured beside the shell of SQLite', needs('sqlite3', hasShell), async () => {
  const { signal } = new AbortController()
  const effort = { rounds: 1, warmUpSeconds: 0, manyPlants: 0, plantsInFile: 100, signal }
  const { text } = await importAndExport(effort)
  const measured = text.match(/^\| (sqlite3|plant-store).* \d+\.\d+ \|.*\d \|$/gm)
  expect(measured).toHaveLength(7)
})
