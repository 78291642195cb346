import { defineConfig, mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

/** By day how a load is measured, and at night every part of the benchmark. */
export default defineConfig(({ mode }) => {
  const night = { include: ['test/*.proof.ts'], testTimeout: 300_000 }
  return mergeConfig(shared, {
    test: { globalSetup: freshBuild, ...(mode === 'night' && night) },
  })
})
