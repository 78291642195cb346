import { defineConfig, mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

const hourMs = 3_600_000
const byDay = {
  globalSetup: [freshBuild, '@plant-store/harness/postgres-setup'],
  // Each is a load of its own: not beside browsers.
  sequence: { groupOrder: 1 },
}
/** The long proofs and the breaks, each of which is a load of its own. */
const atNight = {
  globalSetup: freshBuild,
  include: ['test/*.proof.ts'],
  testTimeout: hourMs,
  maxConcurrency: 1,
}

export default defineConfig(({ mode }) =>
  mergeConfig(shared, { test: mode === 'night' ? atNight : byDay }),
)
