import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/**
 * Lints an interface description with Spectral.
 *
 * @param rules the file with its rules, in this folder
 * @returns what it finds, as text
 */
export async function lint(description: string, rules: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-'))
  try {
    const file = join(folder, 'openapi.json')
    await writeFile(file, description)
    const args = ['lint', file, '--ruleset', join(import.meta.dirname, rules), '--fail-severity', 'hint']
    const spectral = spawn(join(import.meta.dirname, '../node_modules/.bin/spectral'), args)
    return (await Promise.all([text(spectral.stdout), text(spectral.stderr)])).join('')
  } finally {
    await rm(folder, { recursive: true })
  }
}
