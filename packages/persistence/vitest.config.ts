import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

export default mergeConfig(shared, {
  test: { globalSetup: [freshBuild, '@plant-store/harness/postgres-setup'] },
})
