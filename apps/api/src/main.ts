import './start.ts'

const { serve } = await import('./serve.ts')
await serve()
