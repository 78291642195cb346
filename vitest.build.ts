import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

/** Builds what tests start, once for all projects of a run, and before they run again. */
export default function setUp(project: {
  onTestsRerun(listener: () => Promise<void>): void
}): void {
  if (process.env['TESTS_HAVE_BUILT'] === undefined) {
    build()
  }
  process.env['TESTS_HAVE_BUILT'] = '1'
  project.onTestsRerun(async () => build())
}

function build(): void {
  const turbo = join(import.meta.dirname, 'node_modules/turbo/bin/turbo')
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [turbo, 'run', 'build', '--output-logs=errors-only'],
    { encoding: 'utf8', env: { ...process.env, TURBO_TELEMETRY_DISABLED: '1' } },
  )
  if (status !== 0) {
    throw new Error(`the build failed:\n${stdout}${stderr}`)
  }
}
