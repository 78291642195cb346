import { defineConfig } from 'vitest/config'

// The tests install and build.
export default defineConfig({ test: { testTimeout: 240_000, hookTimeout: 60_000 } })
