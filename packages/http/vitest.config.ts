import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../tooling/vitest.config.ts'

// The build puts the files of the API reference together.
export default mergeConfig(shared, { test: { globalSetup: freshBuild } })
