import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'

/**
 * Loaded before a server, in each of its threads. From SIGUSR2 on it samples what the
 * thread allocates.
 */

const samples = {
  samplingInterval: 8 * 1024,
  includeObjectsCollectedByMajorGC: true,
  includeObjectsCollectedByMinorGC: true,
}
const session = new Session()
session.connect()
const start = () => session.post('HeapProfiler.startSampling', samples)
process.once('exit', () =>
  session.post('HeapProfiler.stopSampling', (_, { profile }) =>
    writeFileSync(
      join(process.env['HEAP_PROFILES'] ?? '', `${threadId}.json`),
      JSON.stringify(profile),
    ),
  ),
)

const threads = new BroadcastChannel('sample-heap')
threads.onmessage = start
threads.unref()
// Only the main thread gets it.
process.once('SIGUSR2', () => {
  threads.postMessage('start')
  start()
})
