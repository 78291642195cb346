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

/** Provides the server that TEST_DATABASE_URL names, or starts one (`globalSetup`). */
export async function setup(project: TestProject): Promise<void> {
  const { TEST_DATABASE_URL: given } = process.env
  if (!given) {
    server = await startPostgres()
  }
  project.provide('postgresUrl', given || (server as PostgresServer).url)
}

export async function teardown(): Promise<void> {
  await server?.[Symbol.asyncDispose]()
}
