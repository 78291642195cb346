import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, inject } from 'vitest'

// Stryker knows only of the process of a test. This passes the mutant on to the processes and threads that the test
// starts, and in the first run, without a mutant, adds what they reached to what the test reaches.

interface Stryker {
  readonly currentTestId?: string
  mutantCoverage?: { readonly static: object; readonly perTest: Record<string, Record<string, number>> }
}

declare module 'vitest' {
  interface ProvidedContext {
    mode: 'dry-run' | 'mutant'
    activeMutant: string
  }
}

// The instrumented code reads it where Stryker is not.
delete process.env['__STRYKER_ACTIVE_MUTANT__']
if (inject('mode') === 'mutant') process.env['__STRYKER_ACTIVE_MUTANT__'] = inject('activeMutant')
else {
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
    const { perTest } = stryker.mutantCoverage
    for (const [id, path] of tests) {
      perTest[id] ??= {}
      for (const mutant of [...reachedIn(path), ...reachedIn(around)]) perTest[id][mutant] ??= 1
    }
    rmSync(folder, { recursive: true })
  })
}

function reachedIn(folder: string): readonly string[] {
  return readdirSync(folder).flatMap(name => readFileSync(join(folder, name), 'utf8').split(' '))
}
