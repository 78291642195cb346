import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../tooling/vitest.config.ts'

/** It puts another Fastify in the place of the one that all others load. */
const onOldest = ['test/mounted-oldest.test.ts']

export default mergeConfig(shared, {
  test: {
    // The build puts the files of the API reference together.
    globalSetup: freshBuild,
    projects: [
      { extends: true, test: { name: 'this Fastify', include: ['test/*.test.ts'], exclude: onOldest } },
      { extends: true, test: { name: 'oldest Fastify', include: onOldest, isolate: true } },
    ],
  },
})
