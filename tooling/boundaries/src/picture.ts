import type { Package } from './workspace.ts'

/**
 * The programs and packages and who imports whom, as Mermaid draws it: from the imports that are there, not from those
 * that may be. Under each name stands what it imports from outside, Node left out.
 */
export function drawPackages(all: readonly Package[]): string {
  const shown = all.filter(({ folder }) => !folder.startsWith('tooling/'))
  const names = new Set(shown.map(({ name }) => name))
  const label = (name: string) => name.slice('@plant-store/'.length)

  const nodes: string[] = []
  const arrows: string[] = []
  for (const { name, folder, files } of shown) {
    const imported = new Set(
      files
        .filter(({ path }) => path.startsWith('src/'))
        .flatMap(({ imports }) => imports.map(({ specifier = '.' }) => specifier))
        .filter(specifier => !specifier.startsWith('.') && !specifier.startsWith('node:'))
        .map(packageName),
    )
    const outside = [...imported].filter(each => !names.has(each)).sort()
    const text = [`<b>${folder}</b>`, ...(outside.length > 0 ? [outside.join(', ')] : [])].join('<br/>')
    nodes.push(`  ${label(name)}["${text}"]`)
    for (const other of [...imported].filter(each => names.has(each)).sort()) {
      arrows.push(`  ${label(name)} --> ${label(other)}`)
    }
  }
  return ['```mermaid', 'flowchart TD', ...nodes, ...arrows, '```'].join('\n')
}

function packageName(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

const begin = '<!-- packages: drawn from the imports by `pnpm --filter @plant-store/boundaries draw` -->'
const end = '<!-- /packages -->'

/** @throws Error when the page has no place for the picture */
export function withPicture(page: string, picture: string): string {
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to < from) throw new Error(`the page has no ${begin} … ${end}`)
  return `${page.slice(0, from + begin.length)}\n${picture}\n${page.slice(to)}`
}
