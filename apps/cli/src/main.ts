#!/usr/bin/env node
import '@plant-store/bundle/start'

await import('./run.ts')
