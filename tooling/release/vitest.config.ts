import { defineConfig, mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

/** By day what users install, and at night a fresh clone and the image. */
export default defineConfig(({ mode }) =>
  mergeConfig(shared, {
    test: {
      include: [mode === 'night' ? 'test/*.proof.ts' : 'test/*.test.ts'],
      globalSetup: freshBuild,
      // They pack, install and build.
      testTimeout: 240_000,
      hookTimeout: 180_000,
      // They do not run beside browsers.
      sequence: { groupOrder: 1 },
    },
  }),
)
