import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// That the program is wired to PostgreSQL. The repositories keep their contracts on it in
// packages/persistence.
const onPostgres = ['test/several-couriers.test.ts', 'test/several-processes.test.ts']

export default mergeConfig(shared, {
  test: {
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
          include: onPostgres,
          globalSetup: '@plant-store/harness/postgres-setup',
        },
      },
    ],
  },
})
