import { defineConfig } from 'vitest/config'
import { freshBuild } from '../vitest.config.ts'

export default defineConfig({
  test: {
    include: ['test/*.test.ts'],
    globalSetup: [freshBuild, 'src/install.ts'],
    testTimeout: 120_000,
    // Packs and installs.
    hookTimeout: 180_000,
  },
})
