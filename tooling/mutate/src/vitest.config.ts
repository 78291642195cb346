import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { mergeConfig, type ViteUserConfig } from 'vitest/config'

// The folder is that of the package whose code is changed.
const own = resolve('vitest.config.ts')
const config: ViteUserConfig = existsSync(own) ? (await import(pathToFileURL(own).href)).default : {}

export default mergeConfig({ test: { testTimeout: 60_000, hookTimeout: 60_000 } }, config)
