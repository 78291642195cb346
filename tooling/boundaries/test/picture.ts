import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const scope = '@plant-store/'

/**
 * The programs and packages and who depends on whom, as Mermaid draws it. A manifest says no more and no less than the
 * imports do: pnpm keeps undeclared ones from resolving, and Knip reports unused ones.
 */
export function drawPackages(root: string): string {
  const manifests = globSync('{apps,packages}/*/package.json', { cwd: root }).sort()
  const nodes: string[] = []
  const arrows: string[] = []
  for (const path of manifests) {
    const { name, dependencies = {} } = JSON.parse(readFileSync(join(root, path), 'utf8'))
    const outside = Object.keys(dependencies).filter(each => !each.startsWith(scope))
    const label = [`<b>${dirname(path)}</b>`, ...(outside.length > 0 ? [outside.join(', ')] : [])].join(
      '<br/>',
    )
    nodes.push(`  ${shortName(name)}["${label}"]`)
    for (const each of Object.keys(dependencies).filter(each => each.startsWith(scope))) {
      arrows.push(`  ${shortName(name)} --> ${shortName(each)}`)
    }
  }
  return ['```mermaid', 'flowchart TD', ...nodes, ...arrows, '```'].join('\n')
}

const shortName = (name: string) => name.slice(scope.length)

const begin = '<!-- packages: drawn by `pnpm --filter @plant-store/boundaries draw` -->'
const end = '<!-- /packages -->'

/** @throws Error when the page has no place for the picture */
export function withPicture(page: string, picture: string): string {
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to < from) throw new Error(`the page has no ${begin} … ${end}`)
  return `${page.slice(0, from + begin.length)}\n${picture}\n${page.slice(to)}`
}
