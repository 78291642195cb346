import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// The build puts the page together, and the files of the API reference.
export default mergeConfig(shared, { test: { globalSetup: freshBuild } })
