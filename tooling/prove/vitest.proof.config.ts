import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

const hourMs = 3_600_000

/** The long proofs, one after another because each is a load of its own. */
export default mergeConfig(shared, {
  test: {
    include: ['test/*.proof.ts'],
    globalSetup: freshBuild,
    testTimeout: hourMs,
    reporters: 'verbose',
  },
})
