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
    setupFiles: join(import.meta.dirname, 'vitest.restore.ts'),
    // One more than the processors of a small machine, as tests also wait. Each further
    // worker loads all modules again. Vitest reads it in the configuration of each project.
    maxWorkers: 3,
    // One event has 30 s, which is plenty on a busy machine, and a test two of them. What
    // is slow by nature has a limit of its own, with the reason beside it.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { interval: 20, timeout: 30_000 } },
  },
}

/** A `globalSetup` for tests that start a build. */
export const freshBuild = join(import.meta.dirname, 'vitest.build.ts')
