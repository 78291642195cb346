import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { globalSetup: '@plant-store/postgres/vitest' } })
