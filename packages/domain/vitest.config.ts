import { defineConfig } from 'vitest/config'

// Generous: a machine that tests everything at once is slow.
export default defineConfig({ test: { testTimeout: 30_000 } })
