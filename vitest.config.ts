import { defineConfig } from 'vitest/config'
import { slowTests } from './vitest.slow-tests.ts'

// A pattern would also match the files beside these folders.
const tooling = ['bench', 'boundaries', 'harness', 'prove', 'release'].map(
  name => `tooling/${name}`,
)

/**
 * Every package and program, or with `--mode tooling` the tooling and what the documents
 * say of the programs.
 */
export default defineConfig(({ mode }) => ({
  test: {
    projects: mode === 'tooling' ? [...tooling, 'apps/*'] : ['packages/*', 'apps/*'],
    silent: 'passed-only',
    reporters: ['default', slowTests],
  },
}))
