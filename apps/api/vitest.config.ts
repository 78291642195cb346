import { defineConfig } from 'vitest/config'

// The tests start the program as others do and wait for it, perhaps on a machine that does much besides.
export default defineConfig({ test: { testTimeout: 30_000 } })
