/** Lints the interface description as a running server gives it out: `redocly lint` with the rules in redocly.yaml. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startMemoryService } from './memory-service.ts'

await using service = await startMemoryService({ baseUrl: new URL('https://plants.example') })
const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
try {
  const file = join(folder, 'openapi.json')
  writeFileSync(file, await service.description())
  const rules = fileURLToPath(new URL('redocly.yaml', import.meta.url))
  const { status } = spawnSync('redocly', ['lint', file, '--config', rules, '--max-problems=1000'], {
    stdio: 'inherit',
    // It asks nobody whether there is a newer one, and tells nobody that it ran.
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  })
  process.exitCode = status ?? 1
} finally {
  rmSync(folder, { recursive: true })
}
