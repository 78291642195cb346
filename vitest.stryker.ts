import { mergeConfig } from 'vitest/config'
import shared from './vitest.shared.ts'

/**
 * For `pnpm mutate`. `long-texts` measures time, and takes minutes with every expression
 * counted.
 */
export default mergeConfig(shared, {
  test: {
    include: ['packages/{access,domain,json}/test/*.test.ts'],
    exclude: ['**/long-texts.test.ts'],
    isolate: true,
  },
})
