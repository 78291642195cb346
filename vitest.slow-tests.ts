import type { Reporter, TestModule } from 'vitest/node'

const slowMs = 5_000

/** Prints which tests took longer than 5 s, the slowest first. */
export const slowTests: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]) {
    const slow = modules
      .flatMap(module => [...module.children.allTests()])
      .map(test => ({
        name: `${test.module.relativeModuleId}: ${test.fullName}`,
        ms: test.diagnostic()?.duration ?? 0,
      }))
      .filter(({ ms }) => ms > slowMs)
      .sort((a, b) => b.ms - a.ms)

    for (const { name, ms } of slow) {
      console.log(`${(ms / 1_000).toFixed(1)} s  ${name}`)
    }
  },
}
