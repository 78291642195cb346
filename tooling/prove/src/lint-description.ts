/** Lints the description that a running program serves, with Spectral's rules and OWASP's; see spectral.yaml. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '@plant-store/harness'
import { startProgram } from './program.ts'

using folder = temporaryFolder()
await using program = await startProgram({
  databaseUrl: 'file::memory:',
  environment: { BASE_URL: 'https://plants.example' },
})
const file = join(folder.path, 'openapi.json')
writeFileSync(file, await (await fetch(`${program.url}/openapi.json`)).text())
const rules = fileURLToPath(new URL('../spectral.yaml', import.meta.url))
const { status } = spawnSync('spectral', ['lint', file, '--ruleset', rules, '--fail-severity', 'hint'], {
  stdio: 'inherit',
})
process.exitCode = status ?? 1
