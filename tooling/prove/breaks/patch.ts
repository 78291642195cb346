import { registerHooks } from 'node:module'
import { isMainThread } from 'node:worker_threads'
import { breaks, shortLog } from './breaks.ts'

/** The time for a program to load all of its modules, on a busy machine. */
const loadingMs = 10_000

const name = new URL(import.meta.url).search.slice(1)
const { place, replacement } = { ...breaks, 'short-log': shortLog }[
  name
] as typeof shortLog

// Changes the place in any thread and module, bundled or not. A program without exactly
// one such place ends.
const modules = new Set<string>()
const found = new BroadcastChannel(`place of ${name}`)
found.unref()
const note = (url: string) => {
  modules.add(url)
  if (modules.size > 1) {
    throw new Error(`this break has places in ${[...modules].join(' and ')}`)
  }
}
found.onmessage = ({ data }) => note(`${data}`)
if (isMainThread) {
  const nowhere = 'this break has no place in the program'
  setTimeout(() => {
    if (modules.size === 0) {
      throw new Error(nowhere)
    }
  }, loadingMs).unref()
  process.on('exit', () => {
    if (modules.size > 0) {
      return
    }
    console.error(nowhere)
    process.exitCode = 1
  })
}
registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    if (
      !url.startsWith('file:') ||
      url.includes('/node_modules/') ||
      url.includes('/breaks/')
    ) {
      return loaded
    }
    const source = `${loaded.source ?? ''}`
    const places = [...source.matchAll(new RegExp(place, 'g'))].length
    if (places === 0) {
      return loaded
    }
    if (places > 1) {
      throw new Error(`this break has ${places} places in ${url}`)
    }
    note(url)
    found.postMessage(url)
    return { ...loaded, source: source.replace(place, replacement) }
  },
})
