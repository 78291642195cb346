// Checked before the program is loaded, as an older Node fails at loading it.
const nodeMin = 24
if (Number.parseInt(process.versions.node, 10) < nodeMin) {
  console.error(`plant-store: Node ${process.versions.node} is too old; install Node ${nodeMin} or later`)
  process.exit(1)
}
await import('./serve.ts')

export {}
