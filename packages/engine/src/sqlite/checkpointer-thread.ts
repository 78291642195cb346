import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { type CheckpointerData, fsyncFailure } from './checkpointer.ts'
import { openConnection } from './connection.ts'

const owner = parentPort as MessagePort
const { file, descriptor } = workerData as CheckpointerData
const connection = openConnection(file, { fileMustExist: true })
connection.pragma('fullfsync = ON')

owner.on('message', (command: 'copy' | 'close') => {
  if (command === 'close') {
    connection.close()
    owner.close()
    return
  }
  try {
    connection.pragma('wal_checkpoint(passive)')
  } catch {
    // None of its pages is counted.
  }
  owner.postMessage(fsyncFailure(descriptor))
})
