import './prepare-process.ts'

const { serve } = await import('./serve.ts')
// This program is only started in a clone.
await serve('npx --yes pnpm@12 plant-store')
