import '@plant-store/bundle/require-node'

const { serve } = await import('./serve.ts')
await serve()
