import { inject, onTestFinished, type TestContext } from 'vitest'
import { takePort } from './ports.ts'
import { createDatabase, createSchema, type TestDatabase } from './postgres.ts'
import type {} from './postgres-setup.ts'
import { temporaryFolder as disposableFolder } from './temporary-folder.ts'
import { noTracer, trace } from './trace.ts'

const missing = new Set<string>()

/**
 * Returns the options of a test that is skipped without a program, and says once which is
 * missing. In CI it runs all the same, and fails.
 */
export function needs(program: string, isInstalled: boolean) {
  if (!isInstalled && !missing.has(program)) {
    missing.add(program)
    process.stderr.write(`missing: ${program}\n`)
  }
  return { skip: !isInstalled && !process.env['CI'] }
}

/** The reason to skip a test even in CI: not every root may mount. */
export const mayNotMount = 'not allowed: mounting a disk'

/**
 * Makes a folder that is removed after the test.
 *
 * @param onFinished of the test's context, if tests run concurrently
 */
export function temporaryFolder(
  onFinished: typeof onTestFinished = onTestFinished,
): string {
  const folder = disposableFolder()
  onFinished(() => folder[Symbol.dispose]())
  return folder.path
}

/**
 * Traces this process, or skips the test where it may not be traced.
 *
 * @param inject as for `trace`
 */
export async function traceOrSkip({ skip }: TestContext, inject?: string) {
  const tracer = await trace(process.pid, inject)
  return tracer ?? skip(noTracer)
}

/** Makes a database on the server of `postgres-setup`, which all test files share. */
export function createTestDatabase(): Promise<TestDatabase> {
  return createDatabase(inject('postgresUrl'))
}

/** Makes a schema there, for tests that need no whole database. */
export function createTestSchema(): Promise<TestDatabase> {
  return createSchema(inject('postgresUrl'))
}

/** Returns a port of the loopback interface that is in use until the test ends. */
export async function portTakenForTest(): Promise<number> {
  const taken = await takePort()
  onTestFinished(() => taken[Symbol.asyncDispose]())
  return taken.port
}
