// To be imported first: an older Node fails at loading the rest of a program.
const nodeMin = 24
if (Number.parseInt(process.versions.node, 10) < nodeMin) {
  console.error(`plant-store: Node ${process.versions.node} is too old; install Node ${nodeMin} or later`)
  process.exit(1)
}
