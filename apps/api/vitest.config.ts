import { defineConfig, mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// That the program is wired to PostgreSQL. The repositories keep their contracts on it in
// packages/persistence.
const onPostgres = ['test/several-processes.test.ts']

const sqlite = {
  name: 'SQLite',
  include: ['test/*.test.ts'],
  exclude: onPostgres,
}

const postgres = {
  name: 'PostgreSQL',
  include: onPostgres,
  globalSetup: '@plant-store/harness/postgres-setup',
}

const documents = {
  name: 'documents',
  include: ['test/documents/*.test.ts'],
}

const contract = {
  name: 'contract',
  include: ['test/contract.test.ts'],
  env: { ALL_CASES: '1' },
}

/** The program, or with `--mode tooling` what documents say of it, and all of its contract. */
export default defineConfig(({ mode }) => {
  const projects = mode === 'tooling' ? [documents, contract] : [sqlite, postgres]
  return mergeConfig(shared, {
    test: {
      globalSetup: freshBuild,
      projects: projects.map(test => ({ extends: true, test })),
    },
  })
})
