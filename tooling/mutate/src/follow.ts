import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, inject, vi } from 'vitest'

// Stryker knows only of the process of a test. This passes the mutant on to the processes and threads that the test
// starts, and in the first run, without a mutant, adds what they reached to what the test reaches.

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

/** They wait for one of our time limits to pass, and others reach the same code. */
const slow = [
  'a store that another program keeps locked is not opened, and one line says so',
  'the writer gives a store up that stays locked for five seconds, and what is no store at once',
  'a store that another program locks is reported once, however many changes fail, and once when it works',
  'a store that another program has locked for long is unavailable for changes, readable, and fine again after',
]
beforeEach(({ task, skip }) => skip(slow.includes(task.name)))

// The instrumented code reads it where Stryker is not.
delete process.env['__STRYKER_ACTIVE_MUTANT__']
if (inject('mode') === 'mutant') {
  process.env['__STRYKER_ACTIVE_MUTANT__'] = inject('activeMutant')
} else {
  // On a busy machine, with every expression counted; with a mutant, the time decides.
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
    // Each file of tests loads the code for itself: what that reaches concerns its own tests, not those of all files.
    coverage.static = {}
    rmSync(folder, { recursive: true })
  })
}

function reachedIn(folder: string): readonly string[] {
  return readdirSync(folder).flatMap(name => readFileSync(join(folder, name), 'utf8').split(' '))
}
