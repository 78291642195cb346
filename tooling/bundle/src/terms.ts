import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Metafile } from 'esbuild'

/**
 * Returns the terms of every library that is in a bundle, which must go with it.
 *
 * @throws Error when one names no licence
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
      // Some ship no text: then it is the licence's own.
      if (license === undefined) throw new Error(`${name} is bundled, and names no licence`)
      return [`${name} ${version} (${license})`, ...texts, ''].join('\n\n')
    })
    .sort()
    .join(`${'-'.repeat(80)}\n\n`)
}
