import { defineConfig } from 'vitest/config'

// The tests start programs and kill them, perhaps on a machine that does much besides.
export default defineConfig({
  test: { testTimeout: 30_000, globalSetup: '@plant-store/harness/postgres-setup' },
})
