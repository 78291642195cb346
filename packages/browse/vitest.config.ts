import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../../vitest.shared.ts'

// The build puts the page together, and the files of the API reference.
// Files that share a worker share its store (`test/page.ts`), and all share one browser.
const globalSetup = [freshBuild, '@plant-store/harness/browser-setup']

export default mergeConfig(shared, { test: { globalSetup } })
