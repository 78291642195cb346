import { registerHooks } from 'node:module'

/**
 * Changes one place of a module of the program as it is loaded, in whichever thread loads it.
 *
 * @throws Error while it loads when the place isn't there, or is there more than once
 */
export function patch(moduleEnd: string, place: string | RegExp, replacement: string): void {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (!url.endsWith(moduleEnd)) return loaded
      const pieces = `${loaded.source}`.split(place)
      if (pieces.length !== 2) throw new Error(`${moduleEnd} has ${pieces.length - 1} places for this break`)
      return { ...loaded, source: pieces.join(replacement) }
    },
  })
}
