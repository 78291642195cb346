import type {} from 'vitest'
import type { TestProject } from 'vitest/node'
import { type PostgresServer, startPostgres } from './postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of the server for all test files. Its user may make databases. */
    postgresUrl: string
  }
}

let server: PostgresServer | undefined

/**
 * Provides the server that TEST_DATABASE_URL names, or starts one (`globalSetup`). The
 * first project of a run starts it, and names it to the others.
 */
export async function setup(project: TestProject): Promise<void> {
  if (!process.env['TEST_DATABASE_URL']) {
    server = await startPostgres()
    process.env['TEST_DATABASE_URL'] = server.url
  }
  project.provide('postgresUrl', process.env['TEST_DATABASE_URL'])
}

export async function teardown(): Promise<void> {
  await server?.[Symbol.asyncDispose]()
}
