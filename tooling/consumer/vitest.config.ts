import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/*.test.ts'],
    globalSetup: 'src/install.ts',
    testTimeout: 120_000,
    // Packs and installs.
    hookTimeout: 180_000,
  },
})
