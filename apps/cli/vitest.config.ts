import { defineConfig, mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

/** They start no program. */
const ofParts = [
  'formats',
  'input-file',
  'output-file',
  'standard-output',
  'command-error',
  'store-in-environment',
  'terminal',
  'import',
  'remove',
  'tokens',
  'webhooks',
].map(name => `test/${name}.test.ts`)

const parts = { name: 'parts', include: ofParts }

const program = {
  name: 'program',
  include: ['test/*.test.ts'],
  exclude: ofParts,
  globalSetup: [freshBuild, '@plant-store/harness/postgres-setup'],
}

const documents = {
  name: 'documents',
  include: ['test/documents/*.test.ts'],
  globalSetup: freshBuild,
}

/** The program and its parts, or with `--mode tooling` what documents say of it. */
export default defineConfig(({ mode }) => {
  const projects = mode === 'tooling' ? [documents] : [parts, program]
  return mergeConfig(shared, {
    test: { projects: projects.map(test => ({ extends: true, test })) },
  })
})
