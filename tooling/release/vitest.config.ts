import { defineConfig } from 'vitest/config'
import { freshBuild } from '../vitest.config.ts'

const released = ['test/{folder,image,unit}.test.ts']
const installed = ['test/{packages,program}.test.ts']
// They pack, install and build.
const patient = { testTimeout: 240_000, hookTimeout: 180_000 }

export default defineConfig({
  test: {
    projects: [
      {
        test: { ...patient, name: 'released', include: released, globalSetup: [freshBuild, 'test/build.ts'] },
      },
      {
        test: {
          ...patient,
          name: 'installed',
          include: installed,
          globalSetup: [freshBuild, 'test/install.ts'],
        },
      },
      { test: { ...patient, name: 'browser', include: ['test/browser.test.ts'], globalSetup: freshBuild } },
      { test: { ...patient, name: 'sources', include: ['test/{clone,generators}.test.ts'] } },
    ],
  },
})
