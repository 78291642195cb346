import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// The build puts the files of the API reference together.
export default mergeConfig(shared, { test: { globalSetup: freshBuild } })
