import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { closeOnError, openWriterConnection } from './connection.ts'
import { Writer } from './writer.ts'
import type { WriterCommand, WriterData } from './writer-client.ts'

assert(parentPort !== null, 'this file runs as a worker')
const owner = parentPort
const { file, ...options }: WriterData = workerData
const writer = closeOnError(
  openWriterConnection(file, options.lockTimeoutMs),
  connection => new Writer(connection, options),
)

owner.on('message', async (command: WriterCommand) => {
  if (command !== 'close') {
    return writer.connect(command.connect, command.kind)
  }
  await writer.close()
  owner.close()
})
// `startWriter` waits for this message.
owner.postMessage('open')
