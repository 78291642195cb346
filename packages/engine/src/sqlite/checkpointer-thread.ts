import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { type CheckpointerData, makePass } from './checkpointer.ts'
import { openConnection } from './connection.ts'

const owner = parentPort as MessagePort
const { file, descriptor } = workerData as CheckpointerData
const connection = openConnection(file, { fileMustExist: true })
connection.pragma('fullfsync = ON')

owner.on('message', (command: 'copy' | 'close') => {
  if (command === 'copy') {
    owner.postMessage(
      makePass(() => connection.pragma('wal_checkpoint(passive)'), descriptor),
    )
    return
  }
  connection.close()
  owner.close()
})
