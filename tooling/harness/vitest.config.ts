import { defineConfig } from 'vitest/config'

// The tests start servers, perhaps on a machine that does much besides.
export default defineConfig({ test: { testTimeout: 30_000 } })
