// A program imports this first, because an older Node cannot load its other files.
const nodeMin = 24
if (Number.parseInt(process.versions.node, 10) < nodeMin) {
  console.error(
    `plant-store: Node ${process.versions.node} is too old; install Node ${nodeMin} or later`,
  )
  process.exit(1)
}

// At SIGUSR1, Node would open its inspector to every user of the machine.
// `--disable-sigusr1` depends on how Node is started. SIGUSR2, which rotates the logs of
// other programs, would end it without a line.
for (const signal of ['SIGUSR1', 'SIGUSR2']) {
  process.on(signal, () => {})
}
