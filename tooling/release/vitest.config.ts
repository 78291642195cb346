import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// They pack, install and build.
const patient = mergeConfig(shared, {
  test: { testTimeout: 240_000, hookTimeout: 180_000 },
})
const project = (name: string, files: string, globalSetup: readonly string[]) =>
  mergeConfig(patient, {
    test: { name, include: [`test/${files}.test.ts`], globalSetup: [...globalSetup] },
  })

export default {
  test: {
    // Vitest begins with the first names. The last two projects wait for what their
    // set-up makes.
    projects: [
      project('browser', 'browser', [freshBuild]),
      project('clone', '{clone,generators,health,recipes}', []),
      project('installed', '{packages,program}', [freshBuild, 'test/install.ts']),
      project('released', '{folder,image,unit}', [freshBuild, 'test/build.ts']),
    ],
  },
}
