import { workerData } from 'node:worker_threads'

/** Throws in the thread that copies the log, after some passes. */
if (workerData !== null && 'descriptor' in workerData) {
  const wait = 50
  setTimeout(() => {
    throw new Error('a defect on purpose')
  }, wait)
}
