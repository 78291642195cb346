import { inject, onTestFinished } from 'vitest'
import { takePort } from './ports.ts'
import { createDatabase, type TestDatabase } from './postgres.ts'
import type {} from './postgres-setup.ts'
import { temporaryFolder as disposableFolder } from './temporary-folder.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** What the test is skipped without. */
    needs?: string
  }
}

/** Options of tests that are skipped where a program is missing. The end of the run names it. */
export function needs(program: string, isInstalled: boolean) {
  return { skip: !isInstalled, meta: { needs: program } }
}

/** Why a test is skipped that even CI may have to skip: not every root may mount. */
export const mayNotMount = 'not allowed: mounting a disk'

/** Whether tests try all that they can, as `pnpm prove` wants; otherwise they try a part, another one each time. */
export const isThorough = process.env['THOROUGH'] === 'true'

/** Makes a folder that is gone when the test has ended. */
export function temporaryFolder(): string {
  const folder = disposableFolder()
  onTestFinished(() => folder[Symbol.dispose]())
  return folder.path
}

/** Makes a database on the server that `postgres-setup` started for all test files. */
export function createTestDatabase(): Promise<TestDatabase> {
  return createDatabase(inject('postgresUrl'))
}

/** Returns a port of the loopback interface that is taken until the test has ended. */
export async function portTakenForTest(): Promise<number> {
  const taken = await takePort()
  onTestFinished(() => taken[Symbol.asyncDispose]())
  return taken.port
}
