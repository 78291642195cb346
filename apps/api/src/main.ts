import '@plant-store/bundle/require-node'

await import('./serve.ts')
