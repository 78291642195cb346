import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** The programs and packages and what their sources import, as Mermaid draws it. */
export function drawPackages(root: string): string {
  const folders = globSync('{apps,packages}/*/', { cwd: root }).sort()
  const namesOfOurs = new Map(
    folders.map(folder => {
      const { name } = JSON.parse(
        readFileSync(join(root, folder, 'package.json'), 'utf8'),
      )
      return [name as string, basename(folder)]
    }),
  )
  const nodes: string[] = []
  const arrows: string[] = []
  for (const folder of folders) {
    const imported = importedPackages(join(root, folder))
    const outside = imported.filter(each => !each.startsWith('@plant-store/'))
    const label = [
      `<b>${folder}</b>`,
      ...(outside.length > 0 ? [outside.join(', ')] : []),
    ].join('<br/>')
    nodes.push(`  ${basename(folder)}["${label}"]`)
    for (const each of imported) {
      const ours = namesOfOurs.get(each)
      if (ours !== undefined) {
        arrows.push(`  ${basename(folder)} --> ${ours}`)
      }
    }
  }
  return ['```mermaid', 'flowchart TD', ...nodes, ...arrows, '```'].join('\n')
}

/** Returns what the sources of a package import, their own files left out. */
export function importsIn(folder: string): string[] {
  const sources = globSync('src/**/*.ts', { cwd: folder }).map(path =>
    readFileSync(join(folder, path), 'utf8'),
  )
  return sources.flatMap(source =>
    [...source.matchAll(/\b(?:from |import |import\()'([@\w][^']*)'/g)].map(
      ([, name]) => name as string,
    ),
  )
}

/** Returns the names of the packages, Node left out, in order. */
function importedPackages(folder: string): string[] {
  const names = importsIn(folder).map(
    imported => /^(@[^/]+\/)?[^/:]+/.exec(imported)?.[0] as string,
  )
  return [...new Set(names)].filter(name => name !== 'node').sort()
}

const begin = '<!-- packages: drawn by `pnpm --filter @plant-store/boundaries draw` -->'
const end = '<!-- /packages -->'

/** @throws Error when the page has no place for the picture */
export function withPicture(page: string, picture: string): string {
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to < from) {
    throw new Error(`the page has no ${begin} … ${end}`)
  }
  return `${page.slice(0, from + begin.length)}\n${picture}\n${page.slice(to)}`
}
