import { defineConfig, mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// They pack, install and build.
const patient = mergeConfig(shared, {
  test: { testTimeout: 240_000, hookTimeout: 180_000 },
})
const project = (name: string, files: string, globalSetup: readonly string[]) =>
  mergeConfig(patient, {
    test: { name, include: [`test/${files}.ts`], globalSetup: [...globalSetup] },
  })

/** By day what users install, and at night a fresh clone. */
export default defineConfig(({ mode }) => ({
  test: {
    // The last two wait for what their set-up makes.
    projects:
      mode === 'night'
        ? [project('clone', 'clone.proof', [])]
        : [
            project('quick', '{generators,health}.test', []),
            project('installed', 'packages.test', [freshBuild, 'test/pack.ts']),
            project('released', '{folder,image,unit}.test', [
              freshBuild,
              'test/release.ts',
            ]),
          ],
  },
}))
