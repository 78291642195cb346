import { join } from 'node:path'

/**
 * What the tests of every package begin with. What they import of ours are its sources, so that no test judges an old
 * build. Processes and threads that a test starts get the condition with `process.execArgv`.
 */
export default {
  ssr: { resolve: { conditions: ['plant-store-source'] } },
  // A worker keeps what it has loaded for its next file: tests leave no state of a module behind.
  test: { isolate: false, testTimeout: 60_000, hookTimeout: 60_000 },
}

/** A `globalSetup` for tests that start what is built. */
export const freshBuild = join(import.meta.dirname, 'fresh-build.ts')
