import { defineConfig, mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

/** They start the program or PostgreSQL. */
const ofProgram = ['program', 'postgres', 'old-node'].map(name => `test/${name}.test.ts`)

const needed = [freshBuild, '@plant-store/harness/postgres-setup']

const parts = { name: 'parts', include: ['test/*.test.ts'], exclude: ofProgram }

const program = {
  name: 'program',
  include: ofProgram,
  globalSetup: needed,
}

const documents = {
  name: 'documents',
  include: ['test/documents/*.test.ts'],
  globalSetup: needed,
}

/** The program and its parts, or with `--mode tooling` what documents say of it. */
export default defineConfig(({ mode }) => {
  const projects = mode === 'tooling' ? [documents] : [parts, program]
  return mergeConfig(shared, {
    test: { projects: projects.map(test => ({ extends: true, test })) },
  })
})
