import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { run } from './run.ts'

/**
 * Returns the shared libraries that a program or an addon loads on this machine, the
 * loader included.
 */
export function librariesOf(file: string): readonly string[] {
  return [...run('ldd', file).matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].map(
    ([, path]) => path as string,
  )
}

/** Returns the Debian package of a library. */
export function debianPackageOf(library: string): {
  name: string
  version: string
  text: string
} {
  const [, name = ''] =
    /^([^:,\s]+)/.exec(run('dpkg-query', '--search', `/*/${basename(library)}`)) ?? []
  const shown = run('dpkg-query', '--show', name)
  const [, version = ''] = shown.trim().split('\t')
  return {
    name,
    version,
    text: readFileSync(join('/usr/share/doc', name, 'copyright'), 'utf8').trim(),
  }
}
