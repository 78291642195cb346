import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// The build puts the page together, and the files of the API reference.
// Files that share a worker share its store and its browser (`test/page.ts`).
export default mergeConfig(shared, { test: { globalSetup: freshBuild } })
