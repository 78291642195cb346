#!/usr/bin/env node
// This is no script of package.json, because pnpm would print its command line, and a
// line after each exit code but 0.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('../../..', import.meta.url)))
const turbo = fileURLToPath(import.meta.resolve('turbo/bin/turbo'))
const build = [
  turbo,
  'run',
  'build',
  '--filter=plant-store',
  '--output-logs=errors-only',
  '--log-order=grouped',
]
const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1' }
// Standard output is the command's.
const child = spawn(process.execPath, build, { env, stdio: ['ignore', 'pipe', 'pipe'] })
const printed = []
for (const stream of [child.stdout, child.stderr]) {
  stream.on('data', bytes => printed.push(bytes))
}
const notice = setTimeout(() => process.stderr.write('Building plant-store …\n'), 1_000)
const [status] = await once(child, 'close')
clearTimeout(notice)
if (status === 0) {
  await import('../../../apps/cli/dist/main.js')
} else {
  process.stderr.write(Buffer.concat(printed))
  process.exitCode = 1
}
