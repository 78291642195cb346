import { relative } from 'node:path'
import { DefaultReporter, type TestModule, type Vitest } from 'vitest/node'
import type {} from './vitest.ts'

const root = `${import.meta.dirname}/../../..`

/** Prints one line for each test file, failures whole, and no summary: `tooling/run.ts` sums up the lines of all packages. */
export default class LineReporter extends DefaultReporter {
  override onInit(ctx: Vitest): void {
    this.ctx = ctx
    this.silent = 'passed-only'
  }

  protected override printTestModule(module: TestModule): void {
    const tests = [...module.children.allTests()]
    const count = (state: string) => tests.filter(test => test.result().state === state).length
    const [failed, skipped] = [count('failed'), count('skipped')]
    const project = module.project.name && ` (${module.project.name})`
    const counts = [
      `${tests.length} tests`,
      ...(failed > 0 ? [`${failed} failed`] : []),
      ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ]
    const seconds = (module.diagnostic().duration / 1000).toFixed(1)
    const path = relative(root, module.moduleId).replaceAll('\\', '/')
    this.log(`${module.ok() ? '✓' : '✗'} ${path}${project}: ${counts.join(', ')}, ${seconds} s`)
    for (const test of tests) {
      const result = test.result()
      if (result.state === 'skipped')
        this.log(`↓ ${path}${project}: ${test.fullName}: ${result.note ?? `${test.meta().needs} is missing`}`)
    }
  }

  override reportTestSummary(): void {}
}
