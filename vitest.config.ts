import { defineConfig } from 'vitest/config'
import { slowTests } from './vitest.slow-tests.ts'

// A pattern would also match the files beside these folders.
const tooling = ['bench', 'boundaries', 'harness', 'prove', 'release'].map(
  name => `tooling/${name}`,
)

const projectsOf: Readonly<Record<string, readonly string[]>> = {
  test: ['packages/*', 'apps/*'],
  tooling: [...tooling, 'apps/*'],
  night: ['tooling/bench', 'tooling/prove', 'tooling/release'],
}

/**
 * Every package and program. With `--mode tooling` the tooling and what the documents say
 * of the programs, and with `--mode night` what takes longer: the proofs, one after
 * another.
 */
export default defineConfig(({ mode }) => ({
  test: {
    projects: [...(projectsOf[mode] ?? [])],
    fileParallelism: mode !== 'night',
    // The proofs say what they have tried.
    silent: mode === 'night' ? false : 'passed-only',
    reporters: ['default', slowTests],
  },
}))
