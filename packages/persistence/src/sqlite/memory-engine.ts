import type { Engine } from '../storage.ts'
import { inMemory, openConnection } from './connection.ts'
import { createStorage } from './engine.ts'
import { bringUpToDate } from './migrate.ts'
import { prepareTransaction } from './transaction.ts'
import type { Writer } from './writer.ts'

/** A store that ends with its process. It has no disk to wait for, and no second connection. */
export function createMemoryEngine(): Engine {
  const refuse = () => Promise.reject(new Error('it is in the memory of one process'))
  return {
    async open({ limits }, { onCommit = () => {}, onStateChange }) {
      const connection = openConnection(inMemory)
      await bringUpToDate(connection)
      const runTransaction = prepareTransaction(connection)
      const writer: Writer = {
        async runTransaction(batch) {
          const begun = performance.now()
          const affectedRows = runTransaction(batch)
          onCommit({ changes: batch.length, ms: performance.now() - begun })
          return affectedRows
        },
        outage: () => undefined,
        close: () => {},
      }
      return createStorage(connection, writer, limits, onStateChange)
    },
    archive: refuse,
    snapshot: refuse,
    inspect: refuse,
  }
}
