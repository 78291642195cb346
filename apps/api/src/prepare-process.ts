// To be imported first: an older Node cannot load the rest of a program.
const nodeMin = 24
if (Number.parseInt(process.versions.node, 10) < nodeMin) {
  console.error(
    `plant-store: Node ${process.versions.node} is too old; install Node ${nodeMin} or later`,
  )
  process.exit(1)
}

// By default Node opens its inspector to every user of the machine. `--disable-sigusr1`
// depends on who starts Node.
process.on('SIGUSR1', () => {})
