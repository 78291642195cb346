import { existsSync } from 'node:fs'
import { extname } from 'node:path'

/**
 * Returns the folder of the browser page. In a bundle it is beside this file. The
 * sources use the folder that the package's build has written, and have no page before
 * that.
 */
export function browseFolder(): URL | undefined {
  const isBundle = extname(import.meta.url) === '.js'
  if (isBundle) {
    return new URL('./browse/', import.meta.url)
  }
  const page = new URL(import.meta.resolve('@plant-store/browse'))
  if (!existsSync(page)) {
    return undefined
  }
  return new URL('./', page)
}
