import './prepare-process.ts'

const { serve } = await import('./serve.ts')
await serve()
