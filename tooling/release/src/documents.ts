import { cpSync, existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Copies the documents, so that the release folder explains itself offline. */
export function copyDocuments(from: string, to: string): void {
  cpSync(from, to, { recursive: true })
  for (const page of globSync('**/*.md', { cwd: to })) {
    const file = join(to, page)
    writeFileSync(file, withLinksInside(readFileSync(file, 'utf8'), dirname(file)))
  }
}

/** Returns the page with plain text for each link to a file that the folder lacks. */
function withLinksInside(page: string, folder: string) {
  // The files of `deploy` are at the top of the release folder.
  const moved = page.replaceAll('](../deploy/', '](../')
  return moved.replace(/\[([^\]]*)\]\(([^)#:]+)(?:#[^)]*)?\)/g, (link, text, path) =>
    existsSync(join(folder, path)) ? link : text,
  )
}
