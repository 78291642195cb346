#!/usr/bin/env node
import '@plant-store/api/start'

await import('./run.ts')
