import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// The build puts the page together, and the files of the API reference.
// One file after another, because all share one store and one browser (`test/page.ts`).
export default mergeConfig(shared, { test: { globalSetup: freshBuild, maxWorkers: 1 } })
