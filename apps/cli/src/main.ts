#!/usr/bin/env node
import '@plant-store/api/prepare-process'

const { run } = await import('./program.ts')
await run(process.argv.slice(2))
