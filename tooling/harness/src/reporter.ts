import { relative } from 'node:path'
import { DefaultReporter, type TestModule, type Vitest } from 'vitest/node'
import type {} from './vitest.ts'

const root = `${import.meta.dirname}/../../..`
const pathOf = (file: string) => relative(root, file).replaceAll('\\', '/')

/**
 * Prints one line for each test file and for each failure, failures whole at the end, and no summary: `tooling/run.ts`
 * sums up the lines of all packages.
 */
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
    const path = `${pathOf(module.moduleId)}${project}`
    this.log(`${module.ok() ? '✓' : '✗'} ${path}: ${counts.join(', ')}, ${seconds} s`)
    this.#logFailure(path, module.errors())
    for (const suite of module.children.allSuites())
      this.#logFailure(`${path}: ${suite.fullName}`, suite.errors())
    for (const test of tests) {
      const result = test.result()
      const name = `${path}: ${test.fullName}`
      if (result.state === 'failed') this.#logFailure(name, result.errors)
      // If a hook fails, its tests are skipped too.
      else if (result.state === 'skipped' && (result.note || test.options.mode === 'skip'))
        this.log(`↓ ${name}: ${result.note ?? `${test.meta().needs} is missing`}`)
    }
  }

  override onTestRunEnd(...ending: Parameters<DefaultReporter['onTestRunEnd']>): void {
    super.onTestRunEnd(...ending)
    const [modules, unhandled] = ending
    for (const error of unhandled) this.#logFailure(pathOf(this.ctx.config.root), [error])
    for (const module of modules)
      if (module.state() === 'pending')
        this.#logFailure(pathOf(module.moduleId), [{ message: 'did not end' }])
  }

  #logFailure(name: string, errors: readonly { readonly message: string }[]): void {
    const [message = ''] = errors[0]?.message.split('\n') ?? []
    if (errors.length > 0) this.log(`× ${name}: ${message}`)
  }

  override reportTestSummary(): void {}
}
