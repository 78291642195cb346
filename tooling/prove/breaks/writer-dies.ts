import { isMainThread, workerData } from 'node:worker_threads'

/** A defect in the thread that commits, between two commits, at the moment when the process gets SIGUSR2. */
const defect = new BroadcastChannel('defect')
defect.unref()
if (isMainThread) process.on('SIGUSR2', () => defect.postMessage(''))
else if ('batchRowsMax' in workerData)
  defect.onmessage = () => {
    throw new Error('a defect on purpose')
  }
