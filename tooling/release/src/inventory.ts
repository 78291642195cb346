import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readManifest } from './run.ts'

/** A third-party part of the release. */
export interface Part {
  /** The type in a package URL. */
  readonly type: 'npm' | 'generic' | 'deb/debian'
  readonly name: string
  readonly version: string
  /** An SPDX expression. */
  readonly license: string
  /** Its terms, whole. */
  readonly text: string
}

const line = `${'-'.repeat(80)}\n\n`

/** Returns the libraries inside the packed program. */
export function bundledParts(terms: string): readonly Part[] {
  return terms.split(line).map(block => {
    const parsed = /^(\S+) (\S+) \(([^\n]+)\)\n(.*)$/s.exec(block)
    assert(parsed, `these terms have no title: ${block.slice(0, 100)}`)
    const [, name = '', version = '', license = '', text = ''] = parsed
    return { type: 'npm', name, version, license, text: text.trim() }
  })
}

/** Returns an npm package that is part of the release unchanged. */
export function npmPart(folder: string): Part {
  const { name, version, license } = readManifest(folder)
  const text = readFileSync(join(folder, 'LICENSE'), 'utf8').trim()
  return { type: 'npm', name, version, license, text }
}

/** Returns the terms of all parts. */
export const toTerms = (parts: readonly Part[]): string =>
  parts
    .map(part => `${part.name} ${part.version} (${part.license})\n\n${part.text}\n\n`)
    .join(line)

/**
 * Returns the parts as a bill of materials (CycloneDX 1.6). It has no date or serial
 * number, so that builds are reproducible.
 */
export function toSbom(version: string, parts: readonly Part[]): string {
  const self = toComponent({ type: 'npm', name: 'plant-store', version, license: 'MIT' })
  const sbom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { ...self, type: 'application' } },
    components: parts.map(toComponent),
  }
  return `${JSON.stringify(sbom, null, 2)}\n`
}

function toComponent({ type, name, version, license }: Omit<Part, 'text'>) {
  const path = name.split('/').map(encodeURIComponent).join('/')
  const purl = `pkg:${type}/${path}@${encodeURIComponent(version)}`
  const licenses = [{ expression: license }]
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses }
}
