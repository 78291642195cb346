import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { launch, temporaryFolder } from '@plant-store/harness'
import type { Finding, Part } from './part.ts'

export const thoroughTestsPart: Part = { name: 'starts-and-stops', share: 0.05, run: runThoroughTests }

const folder = join(import.meta.dirname, '../../../apps/api')
const files = ['test/failed-start.test.ts', 'test/shutdown.test.ts']

interface Report {
  readonly numTotalTests: number
  readonly testResults: readonly {
    readonly message: string
    readonly assertionResults: readonly { readonly failureMessages: readonly string[] }[]
  }[]
}

/** Runs the tests of the program that try only a part of what they can in `pnpm test`. */
async function runThoroughTests(): Promise<Finding> {
  const vitest = fileURLToPath(new URL('./vitest.mjs', import.meta.resolve('vitest/package.json')))
  using temporary = temporaryFolder()
  const report = join(temporary.path, 'report.json')
  const options = ['--reporter=json', `--outputFile=${report}`]
  await using program = launch([process.execPath, vitest, 'run', ...options, ...files], {
    folder,
    environment: { ...process.env, THOROUGH: 'true' },
  })
  const ending = await program.ended
  const { numTotalTests, testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
  const failures = testResults.flatMap(({ message, assertionResults }) => [
    ...(message ? [message] : []),
    ...assertionResults.flatMap(({ failureMessages }) => failureMessages),
  ])
  return {
    tried: `${numTotalTests} tests of starts with few open files and of stops under load, at length`,
    times: numTotalTests,
    failures: failures.length > 0 || ending === 0 ? failures : [program.errors()],
  }
}
