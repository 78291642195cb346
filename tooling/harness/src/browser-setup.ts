import type {} from 'vitest'
import type { TestProject } from 'vitest/node'
import { hasBrowser, startBrowserServer } from './browser.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser for all test files listens, `''` if none is installed. */
    browserEndpoint: string
  }
}

/** Provides one browser for all test files (`globalSetup`), and closes it afterwards. */
export default async function setUp(project: TestProject) {
  if (!hasBrowser) {
    project.provide('browserEndpoint', '')
    return
  }
  const server = await startBrowserServer()
  project.provide('browserEndpoint', server.wsEndpoint())
  return () => server.close()
}
