#!/usr/bin/env node
import '@plant-store/bundle/require-node'

const { run } = await import('./run.ts')
const exitCode = await run(process.argv.slice(2))
// A server that failed has set its own.
if (exitCode !== 0) process.exitCode = exitCode
