import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { type CheckpointerData, makePass } from './checkpointer.ts'
import { openConnection } from './connection.ts'

/** The thread that copies the WAL for the `Checkpointer` of the writer. */

assert(parentPort !== null, 'this file runs as a worker')
const owner = parentPort
const { file, descriptor }: CheckpointerData = workerData
const connection = openConnection(file, { fileMustExist: true })
// Without this, macOS reports an fsync as done before the data is on the disk.
connection.pragma('fullfsync = ON')

owner.on('message', (command: 'copy' | 'close') => {
  if (command === 'close') {
    connection.close()
    owner.close()
    return
  }

  const copy = () => connection.pragma('wal_checkpoint(passive)')
  owner.postMessage(makePass(copy, descriptor))
})
