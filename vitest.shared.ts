import { join } from 'node:path'

// Node would strip the types of our sources again for each thread and process that a test
// starts.
process.env['NODE_COMPILE_CACHE'] ??= join(
  import.meta.dirname,
  'node_modules/.cache/node',
)

/**
 * The configuration of all tests. They import our sources, so that no test checks an old
 * build. Processes and threads that a test starts get the condition with
 * `process.execArgv`.
 */
export default {
  ssr: { resolve: { conditions: ['plant-store-source'] } },
  // Workers keep loaded modules for their next file, so tests must leave no state in a
  // module.
  test: {
    isolate: false,
    // More than processors, as tests mostly wait. Vitest reads it in the configuration of
    // each project.
    maxWorkers: 6,
    // A busy machine is slow: what takes a second alone has taken half a minute there.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { interval: 20, timeout: 90_000 } },
  },
}

/** A `globalSetup` for tests that start a build. */
export const freshBuild = join(import.meta.dirname, 'vitest.build.ts')
