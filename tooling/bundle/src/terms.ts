import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Metafile } from 'esbuild'

/**
 * Returns the licence terms of every bundled library.
 *
 * @throws Error if one names no licence
 */
export function termsOf({ outputs }: Metafile): string {
  const files = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs))
  const folders = files.flatMap(file => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [])
  return [...new Set(folders)]
    .map(folder => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      const texts = readdirSync(folder)
        .filter(file => /^(licen[cs]e|copying|notice)/i.test(file))
        .map(file => readFileSync(join(folder, file), 'utf8').trim())
      // Some contain no text. Then the licence's own text applies.
      if (license === undefined) throw new Error(`${name} is bundled, and names no licence`)
      return [`${name} ${version} (${license})`, ...texts, ''].join('\n\n')
    })
    .sort()
    .join(`${'-'.repeat(80)}\n\n`)
}
