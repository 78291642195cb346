import { registerHooks } from 'node:module'
import { isMainThread } from 'node:worker_threads'

/** The time for a program to load all of its modules, on a busy machine. */
const loadingMs = 10_000

/**
 * Changes one place of the program as it is loaded, in any thread and module, bundled or not.
 *
 * @throws Error, which ends the program, if there is not exactly one such place
 */
export function patch(place: RegExp, replacement: string): void {
  const modules = new Set<string>()
  const found = new BroadcastChannel(`place of ${place}`)
  found.unref()
  const note = (url: string) => {
    modules.add(url)
    if (modules.size > 1) throw new Error(`this break has places in ${[...modules].join(' and ')}`)
  }
  found.onmessage = ({ data }) => note(`${data}`)
  if (isMainThread) {
    const nowhere = 'this break has no place in the program'
    setTimeout(() => {
      if (modules.size === 0) throw new Error(nowhere)
    }, loadingMs).unref()
    process.on('exit', () => {
      if (modules.size > 0) return
      console.error(nowhere)
      process.exitCode = 1
    })
  }
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (!url.startsWith('file:') || url.includes('/node_modules/')) return loaded
      const source = `${loaded.source ?? ''}`
      const places = [...source.matchAll(new RegExp(place, 'g'))].length
      if (places === 0) return loaded
      if (places > 1) throw new Error(`this break has ${places} places in ${url}`)
      note(url)
      found.postMessage(url)
      return { ...loaded, source: source.replace(place, replacement) }
    },
  })
}
