import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../tooling/vitest.config.ts'

// Every test starts programs, some of them several times; that takes its time on a busy machine.
export default mergeConfig(shared, {
  test: { testTimeout: 180_000, globalSetup: [freshBuild, '@plant-store/harness/postgres-setup'] },
})
