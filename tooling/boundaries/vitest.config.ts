import { defineConfig } from 'vitest/config'

// Turbo reads the whole workspace, perhaps on a machine that does much besides.
export default defineConfig({ test: { testTimeout: 60_000 } })
