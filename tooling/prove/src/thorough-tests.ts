import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { launch, temporaryFolder } from '@plant-store/harness'
import type { Finding, Part } from './part.ts'

export const thoroughTestsPart: Part = { name: 'at-length', share: 0.05, run: runThoroughTests }

const root = join(import.meta.dirname, '../../..')
const filesOf: Readonly<Record<string, readonly string[]>> = {
  'apps/api': ['test/courier.test.ts', 'test/failed-start.test.ts', 'test/shutdown.test.ts'],
  'packages/persistence': ['test/salvage.test.ts'],
  'packages/webhooks': ['test/orders.test.ts'],
}

interface Report {
  readonly numTotalTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly message: string
    readonly assertionResults: readonly { readonly failureMessages: readonly string[] }[]
  }[]
}

/** Runs the tests that try only part of their cases in `pnpm test`. */
async function runThoroughTests(): Promise<Finding> {
  let times = 0
  const failures: string[] = []
  for (const [folder, files] of Object.entries(filesOf)) {
    const { numTotalTests, testResults } = await runTests(join(root, folder), files)
    times += numTotalTests
    for (const { message, assertionResults } of testResults)
      failures.push(...(message ? [message] : []), ...assertionResults.flatMap(each => each.failureMessages))
  }
  const tried = `${times} tests of starts with few open files, of stops under load, of damaged files and of webhooks, at length`
  return { tried, times, failures }
}

async function runTests(folder: string, files: readonly string[]): Promise<Report> {
  using temporary = temporaryFolder()
  const report = join(temporary.path, 'report.json')
  const vitest = fileURLToPath(new URL('./vitest.mjs', import.meta.resolve('vitest/package.json')))
  const options = ['--reporter=json', `--outputFile=${report}`]
  const environment = { ...process.env, THOROUGH: 'true' }
  await using program = launch([process.execPath, vitest, 'run', ...options, ...files], {
    folder,
    environment,
  })
  const ending = await program.ended
  if (!existsSync(report)) throw new Error(`vitest ended with ${ending}: ${program.errors()}`)
  const found: Report = JSON.parse(readFileSync(report, 'utf8'))
  if (ending !== 0 && found.numFailedTests === 0)
    throw new Error(`vitest ended with ${ending}: ${program.errors()}`)
  return found
}
