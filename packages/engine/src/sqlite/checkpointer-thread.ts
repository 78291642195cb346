import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { type CheckpointerData, makePass } from './checkpointer.ts'
import { openConnection } from './connection.ts'

assert(parentPort !== null, 'this file runs as a worker')
const owner = parentPort
const { file, descriptor }: CheckpointerData = workerData
const connection = openConnection(file, { fileMustExist: true })
connection.pragma('fullfsync = ON')

owner.on('message', (command: 'copy' | 'close') => {
  if (command === 'copy') {
    const copy = () => connection.pragma('wal_checkpoint(passive)')
    owner.postMessage(makePass(copy, descriptor))
    return
  }
  connection.close()
  owner.close()
})
