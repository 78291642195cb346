import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Builds what the tests of this package start, before they run and before they run again. */
export default function setUp(project: { onTestsRerun(listener: () => Promise<void>): void }): void {
  // Turbo has built it.
  if (process.env['TURBO_HASH'] !== undefined) return
  build()
  project.onTestsRerun(async () => build())
}

function build(): void {
  const { name } = JSON.parse(readFileSync('package.json', 'utf8'))
  const turbo = ['turbo', 'run', 'build', `--filter=${name}...`, '--output-logs=errors-only']
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, 'run.ts'), ...turbo],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`the build failed:\n${stdout}${stderr}`)
}
