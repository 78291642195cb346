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

/** By day what users install, and at night a fresh clone and the image. */
export default defineConfig(({ mode }) => ({
  test: {
    // Projects with a set-up of their own wait for what it makes.
    projects:
      mode === 'night'
        ? [
            project('clone', 'clone.proof', []),
            project('image', 'image.proof', [freshBuild, 'test/release.ts']),
          ]
        : [
            project('quick', '{generators,health}.test', []),
            project('installed', 'packages.test', [freshBuild, 'test/pack.ts']),
            project('released', '{folder,unit}.test', [freshBuild, 'test/release.ts']),
          ],
  },
}))
