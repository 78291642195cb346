import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Makes a release.
  test: { globalSetup: 'src/build.ts', testTimeout: 60_000, hookTimeout: 120_000 },
})
