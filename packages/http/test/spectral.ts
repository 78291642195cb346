import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** Returns what Spectral finds in an interface description, as text. */
export async function lint(description: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-'))
  try {
    const file = join(folder, 'openapi.json')
    await writeFile(file, description)
    const args = [
      'lint',
      file,
      '--ruleset',
      join(import.meta.dirname, 'spectral.yaml'),
      '--fail-severity',
      'hint',
    ]
    const spectral = spawn(join(import.meta.dirname, '../node_modules/.bin/spectral'), args)
    return (await Promise.all([text(spectral.stdout), text(spectral.stderr)])).join('')
  } finally {
    await rm(folder, { recursive: true })
  }
}
