import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { run } from './run.ts'

/**
 * Returns the shared libraries that a program or an addon loads on this machine, the
 * loader included.
 */
export function librariesOf(file: string): readonly string[] {
  const lines = run('ldd', file).matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)
  return Array.from(lines, ([, path = '']) => path)
}

/** Returns the Debian package of a library. */
export function debianPackageOf(library: string) {
  const [name = ''] = run('dpkg-query', '--search', `/*/${basename(library)}`).split(
    /[:,\s]/,
  )
  const version = run('dpkg-query', '--show', name).trim().split('\t')[1] ?? ''
  const text = readFileSync(join('/usr/share/doc', name, 'copyright'), 'utf8').trim()
  return { name, version, text }
}
