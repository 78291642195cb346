// A program imports this first, because an older Node cannot load its other files.
const nodeMin = 24
if (Number.parseInt(process.versions.node, 10) < nodeMin) {
  console.error(
    `plant-store: Node ${process.versions.node} is too old; install Node ${nodeMin} or later`,
  )
  process.exit(1)
}

// No thread starts in a folder that was deleted. In this folder of Linux nothing has a
// name in letters and no file can be created, so a path from here leads to nothing.
try {
  process.cwd()
} catch {
  try {
    process.chdir('/proc/self/task')
  } catch {
    // Another system lacks it, and threads then say what Node says.
  }
  process.cwd = () => {
    throw new Error('the working folder was deleted: change to another one')
  }
}

// At SIGUSR1, Node would open its inspector to every user of the machine.
// `--disable-sigusr1` depends on how Node is started. SIGUSR2, which rotates the logs of
// other programs, would end it without a line.
for (const signal of ['SIGUSR1', 'SIGUSR2']) {
  process.on(signal, () => {})
}
