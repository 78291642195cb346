import { isMainThread, workerData } from 'node:worker_threads'

/** Throws in the writer's thread between two commits, when the process gets SIGUSR2. */
const defect = new BroadcastChannel('defect')
defect.unref()
if (isMainThread) {
  process.on('SIGUSR2', () => defect.postMessage(''))
} else if ('changeStatements' in workerData) {
  defect.onmessage = () => {
    throw new Error('a defect on purpose')
  }
}
