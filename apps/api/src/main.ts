import '@plant-store/bundle/start'

const { serve } = await import('./serve.ts')
await serve()
