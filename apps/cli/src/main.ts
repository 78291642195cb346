#!/usr/bin/env node
import '@plant-store/bundle/require-node'

await import('./run.ts')
