import { mergeConfig } from 'vitest/config'
import shared, { freshBuild } from '../vitest.config.ts'

export default mergeConfig(shared, { test: { globalSetup: freshBuild } })
