import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Returns the memory that is in use, without garbage. */
export function heapUsed(): number {
  setFlagsFromString('--expose_gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}
