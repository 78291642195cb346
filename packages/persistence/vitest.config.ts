import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: { globalSetup: '@plant-store/harness/postgres-setup' },
})
