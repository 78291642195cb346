import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../tooling/vitest.config.ts'

// What the service promises, on either database.
const onBoth = ['test/contract.test.ts', 'test/restart.test.ts']
const onPostgres = [
  'test/several-couriers.test.ts',
  'test/several-processes.test.ts',
  'test/postgres-ready.test.ts',
]

export default mergeConfig(shared, {
  test: {
    // The tests start the program as others do and wait for it, perhaps on a machine that does much besides.
    testTimeout: 180_000,
    globalSetup: freshBuild,
    projects: [
      {
        extends: true,
        test: {
          name: 'SQLite',
          include: ['test/*.test.ts'],
          exclude: onPostgres,
        },
      },
      {
        extends: true,
        test: {
          name: 'PostgreSQL',
          include: [...onBoth, ...onPostgres],
          globalSetup: '@plant-store/harness/postgres-setup',
        },
      },
    ],
  },
})
