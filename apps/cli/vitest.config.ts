import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

/** They start no program. */
const ofParts = [
  'formats',
  'commands-page',
  'import-input-and-result',
  'output-file',
  'standard-output',
  'command-error',
  'store-in-environment',
  'terminal',
  'import',
  'remove',
  'tokens',
  'webhooks',
  'written-files',
].map(name => `test/${name}.test.ts`)

export default mergeConfig(shared, {
  test: {
    projects: [
      { extends: true, test: { name: 'parts', include: ofParts } },
      {
        extends: true,
        test: {
          name: 'program',
          include: ['test/*.test.ts'],
          exclude: ofParts,
          globalSetup: [freshBuild, '@plant-store/harness/postgres-setup'],
        },
      },
    ],
  },
})
