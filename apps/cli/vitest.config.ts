import { defineConfig } from 'vitest/config'

// Every test starts programs, some of them several times; that takes its time on a busy machine.
export default defineConfig({
  test: { testTimeout: 180_000, hookTimeout: 60_000, globalSetup: '@plant-store/harness/postgres-setup' },
})
