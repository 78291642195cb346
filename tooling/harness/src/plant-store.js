#!/usr/bin/env node
// Not a script of package.json: pnpm would print its command line, and a line after each exit code but 0.
process.argv.splice(2, 0, 'build=plant-store', 'apps/cli/dist/main.js')
await import('../../run.ts')
