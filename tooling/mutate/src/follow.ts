import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, inject, vi } from 'vitest'

// Stryker knows only the process of a test. This passes the mutant on to the processes and threads that the
// test starts. In the first run, without a mutant, it adds what they reached to the test's coverage.

interface Stryker {
  readonly currentTestId?: string
  mutantCoverage?: { static: object; readonly perTest: Record<string, Record<string, number>> }
}

declare module 'vitest' {
  interface ProvidedContext {
    mode: 'dry-run' | 'mutant'
    activeMutant: string
  }
}

/** Tests that wait for a time limit. Others reach the same code. */
const slow = [
  'a store that another program keeps locked is not opened, and one line says so',
  'the writer abandons a store that stays locked for five seconds, and refuses another file at once',
  'a store that another program locks is reported once, however many changes fail, and once when it works',
  'a store that another program has locked for long is unavailable for changes, readable, and fine again after',
]
beforeEach(({ task, skip }) => skip(slow.includes(task.name)))

// The instrumented code reads it outside Stryker.
delete process.env['__STRYKER_ACTIVE_MUTANT__']
if (inject('mode') === 'mutant') {
  process.env['__STRYKER_ACTIVE_MUTANT__'] = inject('activeMutant')
} else {
  // For a busy machine with every expression counted. With a mutant, Stryker's timeout decides.
  vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })
  const { __stryker__: stryker } = globalThis as unknown as { __stryker__: Stryker }
  const folder = mkdtempSync(join(tmpdir(), 'mutate-'))
  const tests = new Map<string, string>()
  const begin = (name: string) => {
    const path = join(folder, name)
    mkdirSync(path, { recursive: true })
    process.env['REACHED_FOLDER'] = path
    return path
  }
  const around = begin('around')
  beforeEach(() => void tests.set(stryker.currentTestId as string, begin(`${tests.size}`)))
  afterEach(() => void begin('around'))
  afterAll(() => {
    stryker.mutantCoverage ??= { static: {}, perTest: {} }
    const coverage = stryker.mutantCoverage
    const { perTest } = coverage
    for (const [id, path] of tests) {
      perTest[id] ??= {}
      const aroundAll = [...Object.keys(coverage.static), ...reachedIn(around)]
      for (const mutant of [...reachedIn(path), ...aroundAll]) perTest[id][mutant] ??= 1
    }
    // Each test file loads the code itself: what that reaches concerns only its own tests.
    coverage.static = {}
    rmSync(folder, { recursive: true })
  })
}

function reachedIn(folder: string): readonly string[] {
  return readdirSync(folder).flatMap(name => readFileSync(join(folder, name), 'utf8').split(' '))
}
