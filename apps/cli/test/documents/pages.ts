import assert from 'node:assert/strict'
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { commandProgram } from '@plant-store/harness/command'
import { expect } from 'vitest'
import type { Place } from '../place.ts'

export const docs = new URL('../../../../docs/', import.meta.url)

const pages = readdirSync(docs).filter(name => name.endsWith('.md'))

/** All pages of docs/. */
export const documents = pages
  .map(name => readFileSync(new URL(name, docs), 'utf8'))
  .join('\n')

/** Returns the only block of a language in docs/ that has these words. */
export function block(language: string, words: string): string {
  const blocks = [...documents.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
  const matches = blocks.filter(
    ([, name, content]) => name === language && content?.includes(words),
  )
  const [match] = matches
  assert(match !== undefined, `no block of ${language} has ${words}`)
  assert(matches.length === 1, `${matches.length} blocks of ${language} have ${words}`)
  return match[2] ?? ''
}

/** Adds the program `plant-store` to the folder, for {@link runBlock}. */
export function addProgram(place: Place): void {
  const script = `#!/bin/sh\nexec '${process.execPath}' '${commandProgram}' "$@"\n`
  writeFileSync(place.path('plant-store'), script, { mode: 0o755 })
}

/**
 * Runs a block of docs/ in a shell, with paths of this machine in the place of its own.
 */
export function runBlock(
  place: Place,
  words: string,
  replacements: Readonly<Record<string, string>> = {},
  environment: Readonly<Record<string, string>> = {},
): SpawnSyncReturns<string> {
  let script = block('sh', words)
  for (const [from, to] of Object.entries(replacements)) {
    expect(script, 'the block of the page').toContain(from)
    script = script.replaceAll(from, to)
  }
  const PATH = `${place.folder}:${process.env['PATH']}`
  return spawnSync('/bin/sh', ['-c', script], {
    cwd: place.folder,
    env: { PATH, DATABASE_URL: place.url, ...environment },
    encoding: 'utf8',
  })
}
