// A plugin of Stryker that passes on each result at once: a run takes hours, and may be interrupted.
import { EventEmitter } from 'node:events'
import type { Stryker } from '@stryker-mutator/core'

type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number]

export const tested = new EventEmitter<{ mutant: [MutantResult] }>()

class Tested {
  onMutantTested(result: MutantResult): void {
    tested.emit('mutant', result)
  }
}

export const strykerPlugins = [{ kind: 'Reporter', name: 'tested', injectableClass: Tested }]
